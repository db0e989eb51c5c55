"""Files of models with numbers, counts, groups and Gaussian hidden nodes: the same bits, or an
error that says what is wrong."""

from __future__ import annotations

import dataclasses
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from tests.reference import version1

import latenttree as lt
from latenttree.errors import DataError
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.io import emission_arrays
from latenttree.io.archive import ARRAYS, MODEL, Saved, check_schema, load_archive, save_archive
from latenttree.io.npz import pack
from latenttree.io.treefile import load_tree
from latenttree.io.zip_archive import write_zip
from latenttree.model.emissions import Emission, pooled
from latenttree.model.emissions.choose import CLASSES
from latenttree.model.gaussian import GaussianTreeModel
from latenttree.model.tree_model import TreeModel
from latenttree.tree import Tree

TREE = Tree.from_newick("((a,b)h0,c,d,e)h1;")
BLOCKS = ("gaussian_spherical", "gaussian_diagonal", "gaussian_full", "gaussian_tied")
FORMS = {
    "gaussian": ("scalar",),
    "gaussian_spherical": ("dense", "sparse"),
    "gaussian_diagonal": ("dense", "sparse"),
    "gaussian_full": ("dense",),
    "gaussian_tied": ("dense",),
    "poisson": ("scalar", "dense", "sparse"),
    "multinomial": ("dense", "sparse"),
    "multihot": ("dense", "sparse"),
}
CASES = [(family, form) for family, forms in FORMS.items() for form in forms]


def values_of(family: str, form: str, rng: np.random.Generator) -> Any:
    counts = rng.poisson(2.0, (50, 4)).astype(float)
    x = (counts > 2).astype(float) if family == "multihot" else counts
    if family in ("gaussian", *BLOCKS):
        x = x * 1e-3 + (rng.normal(5.0, 1e-4, (50, 4)) if form != "sparse" else 0.0)
    return {"scalar": x[:, 0], "dense": x, "sparse": sparse.csr_array(x)}[form]


def emission_of(family: str, form: str, k: int, rng: np.random.Generator) -> Emission:
    """A member of the family with different states."""
    values = values_of(family, form, rng)
    start = pooled(family, values, k)
    weights = rng.dirichlet(np.ones(k), size=50)
    target = start.sums(values, np.ones((50, 1)))[:, 0] / 50
    return start.from_sums(start.sums(values, weights), 1.0, target)


def tree_model(emissions: dict[int, Emission], dims: tuple[int, ...], root: int = 5) -> TreeModel:
    """Tables at random; the states of all nodes are given, 1 where there is an emission."""
    rng = np.random.default_rng(1)
    parents = TREE.rooted(root).parents.tolist()
    tables = [
        rng.dirichlet(np.ones(d), size=1 if u < 0 else dims[u]).T
        for d, u in zip(dims, parents, strict=True)
    ]
    return TreeModel(TREE, root, tuple(tables), emissions)


def mixed() -> TreeModel:
    """a and d categorical, the others numbers; h0 has 2 states, h1 has 3."""
    rng = np.random.default_rng(0)
    emissions = {
        1: emission_of("gaussian", "scalar", 2, rng),
        2: emission_of("gaussian_full", "dense", 3, rng),
        4: emission_of("multihot", "sparse", 3, rng),
    }
    return tree_model(emissions, (3, 1, 1, 2, 1, 2, 3))


def gaussian(k: int = 2, seed: int = 0) -> GaussianTreeModel:
    """Observed nodes of 1, 3, 2, 1 and 4 dimensions, one of them with diagonal noise."""
    rng = np.random.default_rng(seed)
    dims = [1, 3, 2, 1, 4, k, k]
    parents = TREE.rooted(6).parents.tolist()
    loadings = [rng.normal(size=(d, 0 if u < 0 else k)) for d, u in zip(dims, parents, strict=True)]
    noise = [np.cov(rng.normal(size=(d, 9))).reshape(d, d) for d in dims]
    noise[1] = np.diag(noise[1])
    means = [rng.normal(size=d) * (v < 5) for v, d in enumerate(dims)]
    return GaussianTreeModel(TREE, 6, tuple(means), tuple(loadings), tuple(noise))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "m.ltree"


def same(a: Any, b: Any) -> bool:
    return np.shape(a) == np.shape(b) and np.asarray(a).tobytes() == np.asarray(b).tobytes()


def check_same(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    assert (one.root, one.tree.names) == (other.root, other.tree.names)
    names = ("means", "loadings", "noise") if isinstance(one, GaussianTreeModel) else ("cpts",)
    for name in names:
        pairs = zip(getattr(one, name), getattr(other, name), strict=True)
        assert all(same(a, b) for a, b in pairs), name
    if isinstance(one, TreeModel):
        assert list(one.emissions) == list(other.emissions)
        for v, emission in one.emissions.items():
            check_emission(emission, other.emissions[v])


def check_emission(one: Emission, other: Emission) -> None:
    assert type(one) is type(other)
    for spec in dataclasses.fields(one):  # type: ignore[arg-type]
        assert same(getattr(one, spec.name), getattr(other, spec.name)), spec.name


# ---- round trips --------------------------------------------------------------------------


def test_every_family_has_a_place_in_files() -> None:
    assert set(emission_arrays.ARRAYS) == set(CLASSES) == set(FORMS)


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize(("family", "form"), CASES)
def test_every_family_comes_back(path: Path, family: str, form: str, k: int) -> None:
    emission = emission_of(family, form, k, np.random.default_rng(k))
    model = tree_model({0: emission, 4: emission.relabelled(range(k)[::-1])}, (1, 2, 3, 4, 1, k, k))
    save_archive(path, Saved(model))
    found = load_archive(path).model
    check_same(found, model)
    values = values_of(family, form, np.random.default_rng(k))
    assert same(found.emissions[0].log_likelihood(values), emission.log_likelihood(values))
    first = path.read_bytes()
    save_archive(path, Saved(found))
    assert path.read_bytes() == first


def test_families_mixed_and_states_that_differ_by_node(path: Path) -> None:
    save_archive(path, Saved(mixed(), {"a": 1}, {"b": 2}, {"messages": ["c"]}))
    found = load_archive(path)
    check_same(found.model, mixed())
    assert found.model.dims[5:].tolist() == [2, 3]
    assert (found.schema, found.params, found.diagnostics) == (
        {"a": 1},
        {"b": 2},
        {"messages": ["c"]},
    )
    assert load_tree(path).n_states == 3


@pytest.mark.parametrize("k", [1, 3])
def test_gaussian_trees_come_back(path: Path, k: int) -> None:
    save_archive(path, Saved(gaussian(k)))
    check_same(load_archive(path).model, gaussian(k))
    assert load_tree(path).n_states == k


def test_a_file_of_the_first_version(path: Path) -> None:
    path.write_bytes(version1.FILE)
    model = lt.load(path)
    assert model.to_newick() == version1.NEWICK
    posterior = model.transform(version1.FRAME)
    np.testing.assert_allclose(posterior[:, 0], version1.POSTERIOR, atol=1e-8)  # digits printed
    found = model.score_samples(version1.FRAME)
    np.testing.assert_allclose(found, version1.LOG_LIKELIHOOD, atol=1e-8)
    model.save(path)
    assert json.loads(members(path)[MODEL])["version"] == 2


# ---- fitted models ------------------------------------------------------------------------

CYCLES = {
    "numbers": (("gaussian", "poisson", "categorical"), {}),
    "vectors": (("gaussian_spherical", "gaussian_diagonal", "gaussian_full", "gaussian_tied"), {}),
    "groups": (("multinomial", "multihot", "ordinal", "poisson"), {}),
    "gaussian tree": ("gaussian", {"hidden": "gaussian"}),
}


@pytest.mark.parametrize("case", CYCLES)
def test_fitted_models_answer_alike(path: Path, case: str) -> None:
    family, options = CYCLES[case]
    data = make_latent_tree(6, n_samples=1500, family=family, random_state=0, **options)
    kinds = {} if "hidden" in options else {"family": data.family}
    hidden = options.get("hidden", "categorical")
    model = lt.LatentTree(random_state=0, n_jobs=1, search=False, hidden=hidden, **kinds)
    model.fit(data.X).save(path)
    back = lt.load(path)
    check_same(back.model_, model.model_)
    assert back.get_params() == model.get_params()
    assert same(back.score_samples(data.X), model.score_samples(data.X))
    assert same(back.transform(data.X), model.transform(data.X))
    assert back.schema_.families == model.schema_.families
    assert str(back.diagnostics_) == str(model.diagnostics_)
    first = path.read_bytes()
    back.save(path)
    assert path.read_bytes() == first


def test_variables_that_do_not_belong_to_the_model() -> None:
    data = make_latent_tree(6, n_samples=1500, family=("gaussian", "categorical"), random_state=0)
    model = lt.LatentTree(random_state=0, n_jobs=1, search=False).fit(data.X)
    check_schema(model.schema_, model.model_, "m.ltree")
    record = model.schema_.to_json()
    other = dict(zip(range(6), ("poisson", *record["families"][1:]), strict=True))
    for changes in (
        {"families": list(other.values())},
        {"dims": [1, 3, *record["dims"][2:]], "categories": [None] * 6, "kind": "blocks"},
    ):
        try:
            schema = type(model.schema_).from_json(record | changes)
        except DataError:
            continue  # refused before it is compared
        with pytest.raises(DataError, match=r"m\.ltree: the variables .* do not belong .*'x[01]'"):
            check_schema(schema, model.model_, "m.ltree")
    with pytest.raises(DataError, match=r"do not belong to its model \(names\)"):
        check_schema(model.schema_, mixed(), "m.ltree")


# ---- damage -------------------------------------------------------------------------------


def members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def inner(parts: dict[str, bytes]) -> dict[str, Any]:
    with np.load(io.BytesIO(parts[ARRAYS]), allow_pickle=False) as arrays:
        return dict(arrays)


Damage = Callable[[dict[str, Any], dict[str, Any]], object]


def fields(**changes: Any) -> Damage:
    """Other fields of the emissions, or of the record itself."""

    def apply(record: dict[str, Any], _: dict[str, Any]) -> None:
        for name, value in changes.items():
            where = record["emissions"] if name in ("nodes", "families", "widths") else record
            where[name] = value

    return apply


def number(array: str, at: int, value: float) -> Damage:
    return lambda _, arrays: arrays[array].__setitem__(at, value)


# b: means 0..1, variances 2..3, shift 4, scale 5, form 6
MIXED = {
    "family": (fields(families=["gamma", "gaussian_full", "multihot"]), "'gamma' is unknown"),
    "another": (
        fields(families=["poisson", "gaussian_full", "multihot"]),
        "emissions.npy declares",
    ),
    "width": (fields(widths=[2, 4, 4]), "emissions.npy declares"),
    "no width": (fields(widths=[0, 4, 4]), "widths of 'emissions' are not numbers"),
    "huge width": (fields(widths=[1, 2**20, 4]), r"declare [\d,]+ bytes, at most"),
    "vast width": (fields(widths=[1, 10**30, 4]), "widths of 'emissions' are not numbers"),
    "true": (fields(widths=[True, 4, 4]), "no list 'widths' of int"),
    "hidden node": (fields(nodes=[1, 2, 5]), "not observed nodes"),
    "no node": (fields(nodes=[-1, 2, 4]), "not observed nodes"),
    "node twice": (fields(nodes=[1, 1, 4]), "not observed nodes in their order"),
    "lengths": (fields(nodes=[1, 2]), "alike"),
    "list": (fields(emissions=[]), "'emissions' is list, not dict"),
    "more": (lambda record, _: record["emissions"].update(x=[]), "alike"),
    "less": (lambda record, _: record["emissions"].pop("nodes"), "no list 'nodes'"),
    "table": (fields(nodes=[0, 2, 4]), "the emission of 'a' has 2 states"),
    "gone": (lambda _, arrays: arrays.pop("emissions"), "arrays.npz holds"),
    "kind": (fields(hidden="gaussian"), "lacks the field 'diagonal'"),
    "kinds": (fields(hidden="cubic"), "its hidden nodes are 'cubic', none of"),
    "variance": (number("emissions", 2, 0.0), "'variances' of node 'b' .* from 0 to"),
    "scale": (number("emissions", 5, -1.0), "'scale' of node 'b'"),
    "mean": (number("emissions", 0, np.nan), "'means' of node 'b'"),
    "form": (number("emissions", 6, 3.0), "'form' of node 'b'"),
    "covariance": (number("emissions", 19, -1.0), "'covariances' of node 'c'"),
    "asymmetric": (number("emissions", 20, 1e-3), "'covariances' of node 'c'"),
    "scalar": (number("emissions", 7 + 12 + 48 + 8, 0.0), "'c' is a single number by its form"),
    "chance": (number("emissions", -2, 1.0), "'codes' of node 'e'"),
}


def damaged(path: Path, model: Any, damage: Damage) -> None:
    save_archive(path, Saved(model))
    parts = members(path)
    record, arrays = json.loads(parts[MODEL]), inner(parts)
    damage(record, arrays)
    types = {name: (a, "<i8" if a.dtype.kind == "i" else "<f8") for name, a in arrays.items()}
    parts |= {MODEL: json.dumps(record).encode(), ARRAYS: pack(types)}  # type: ignore[arg-type]
    path.write_bytes(write_zip(parts))


@pytest.mark.parametrize(("damage", "message"), MIXED.values(), ids=list(MIXED))
def test_damaged_emissions_are_named(path: Path, damage: Damage, message: str) -> None:
    damaged(path, mixed(), damage)
    with pytest.raises(DataError, match=message):
        load_archive(path)


GAUSSIAN = {
    "mean": (number("means", 0, np.inf), "'a' has parameters that are not finite"),
    "variance": (number("noise", 0, -1.0), "noise of 'a' is not a covariance"),
    "indefinite": (
        lambda _, arrays: arrays["noise"][4:8].__setitem__(slice(None), [1, 5, 5, 1]),
        "noise of 'c' is not a covariance: it has negative variance",
    ),
    "diagonal": (fields(diagonal=[True] * 7), "'noise.npy' declares 392 bytes"),
    "hidden": (
        fields(dims=[1, 3, 2, 1, 4, 1, 1]),
        "declares shape",
    ),
    "type": (fields(diagonal=[0] * 7), "'diagonal' does not say"),
    "length": (fields(diagonal=[False]), "'diagonal' does not say"),
    "kind": (fields(hidden="categorical"), "lacks the field 'emissions'"),
    "huge": (fields(dims=[1, 3, 2, 1, 2**39, 2, 2]), r"declare [\d,]+ bytes, at most"),
}


@pytest.mark.parametrize(("damage", "message"), GAUSSIAN.values(), ids=list(GAUSSIAN))
def test_damaged_gaussian_trees_are_named(path: Path, damage: Damage, message: str) -> None:
    damaged(path, gaussian(), damage)
    with pytest.raises(DataError, match=message):
        load_archive(path)


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_members_damaged_behind_a_good_checksum(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """A valid model comes back, perhaps another one, or DataError; nothing else escapes."""
    path = tmp_path_factory.mktemp("hostile") / "m.ltree"
    save_archive(path, Saved(data.draw(st.sampled_from([mixed(), gaussian()]))))
    parts = members(path)
    with zipfile.ZipFile(io.BytesIO(parts[ARRAYS])) as archive:
        within = {name: archive.read(name) for name in archive.namelist()}
    name = data.draw(st.sampled_from([MODEL, *within]))
    holder = within if name in within else parts
    good = holder[name]
    start = data.draw(st.integers(0, min(len(good) - 1, 400)))
    stop = start + data.draw(st.integers(0, 3))
    marks = st.sampled_from([b"[", b"]", b",", b"-", b"9", b'"', b"true", b"null"])
    holder[name] = good[:start] + data.draw(st.one_of(st.binary(max_size=4), marks)) + good[stop:]
    path.write_bytes(write_zip(parts | {ARRAYS: write_zip(within)}))
    try:
        found = load_archive(path).model
    except DataError:
        return
    assert found.n_parameters > 0
