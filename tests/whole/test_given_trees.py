"""Parameters alone on a tree that is handed over: every family, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from tests.reference.random_trees import random_tree

import latenttree as lt
from latenttree.errors import DataError
from latenttree.search.edge_lengths import implied_lengths
from latenttree.tree import Tree

SEED = {"random_state": 0}


def named(tree: Tree) -> Tree:
    """The same tree with names of its own for hidden nodes."""
    names = (*tree.observed_names, *(f"topic {i}" for i in range(tree.n_hidden)))
    return Tree(names, tree.n_observed, tree.edges, tree.lengths)


@pytest.fixture(scope="module")
def data() -> Any:
    return lt.datasets.make_latent_tree(9, n_samples=5000, random_state=0)


def kept(model: lt.LatentTree, tree: Tree) -> bool:
    """Whether a model has this tree, and the names of its hidden nodes."""
    same = model.tree_.same_topology(tree)
    return same and set(model.tree_.hidden_names) == set(tree.hidden_names)


@pytest.mark.parametrize("form", ["tree", "newick", "distances"])
def test_the_model_is_that_of_the_given_tree(data: Any, form: str) -> None:
    D = data.tree.path_lengths()
    tree = {
        "tree": named(data.tree),
        "newick": named(data.tree).to_newick(),
        "distances": lt.tree_from_distances(D, names=data.tree.observed_names),
    }[form]
    model = lt.LatentTree(2, structure=tree, **SEED).fit(data.X)
    names = data.tree.observed_names
    assert kept(model, lt.Tree.from_newick(tree, names) if isinstance(tree, str) else tree)
    assert model.diagnostics_.support_method == "none"
    assert np.isnan(model.tree_.support).all()
    learned = lt.LatentTree(2, **SEED).fit(data.X)
    # both are maxima of the same likelihood, up to the tolerance of EM
    assert model.score(data.X) == pytest.approx(learned.score(data.X), abs=1e-4)
    assert lt.metrics.parameter_error(model, data) < 0.05
    # information lengths of 5,000 samples
    truth = data.tree.reorder(model.tree_.observed_names)
    np.testing.assert_allclose(model.tree_.path_lengths(), truth.path_lengths(), atol=0.5)
    assert (model.tree_.signs != 0).all()


def test_a_wrong_tree_stays_as_it_is(data: Any) -> None:
    wrong = random_tree(np.random.default_rng(3), 9)
    assert not wrong.same_topology(data.tree)
    model = lt.LatentTree(2, structure=wrong, **SEED).fit(data.X)
    assert kept(model, wrong)
    assert model.score(data.X) < lt.LatentTree(2, **SEED).fit(data.X).score(data.X)


@pytest.mark.parametrize("p", [3, 4, 8])
def test_lengths_of_the_true_model_are_those_it_was_made_with(p: int) -> None:
    for k in (2, 3):
        data = lt.datasets.make_latent_tree(p, n_states=k, n_samples=10, random_state=p)
        np.testing.assert_allclose(implied_lengths(data.model), data.tree.lengths, rtol=1e-6)


def test_lengths_of_a_gaussian_tree_are_those_it_was_made_with() -> None:
    data = lt.datasets.make_latent_tree(
        8, hidden="gaussian", family="gaussian", n_states=1, dim=1, n_samples=10, random_state=0
    )
    np.testing.assert_allclose(implied_lengths(data.model), data.tree.lengths, rtol=1e-6)


def test_columns_are_found_by_name_in_any_order(data: Any) -> None:
    frame = pd.DataFrame(data.X, columns=[f"x{i}" for i in range(9)])
    tree = named(data.tree).reorder([f"x{i}" for i in range(8, -1, -1)], keep_names=True)
    model = lt.LatentTree(2, structure=tree, **SEED).fit(frame)
    assert model.tree_.observed_names == tuple(frame.columns)
    assert kept(model, data.tree) is False  # its names are others
    assert kept(model, tree)


def test_other_variables_are_refused_before_any_work(data: Any) -> None:
    tree = lt.Tree.build([f"x{i}" for i in range(8)] + ["age"], data.tree.edges, data.tree.lengths)
    with pytest.raises(DataError, match="the tree lacks x8 and the table lacks age") as caught:
        lt.LatentTree(2, structure=tree).fit(data.X)
    assert caught.value.place.option == "structure"
    with pytest.raises(DataError, match="the tree lacks x3, x4, x5, x6, x7 and 1 other"):
        lt.LatentTree(2, structure="(x0,x1,x2);").fit(data.X)
    with pytest.raises(DataError, match="unexpected ';' at position 6"):
        lt.LatentTree(2, structure="(x0,x1;").fit(data.X)


@pytest.mark.parametrize("option", ["structure", "distances", "search", "min_support", "tree"])
def test_arrays_in_place_of_options_are_refused_in_words(option: str, data: Any) -> None:
    with pytest.raises(DataError, match=f"{option} is ndarray of shape \\(3, 3\\);"):
        lt.LatentTree(**{option: np.eye(3)}).fit(data.X)
    if option in ("structure", "distances"):
        with pytest.raises(DataError, match="tree_from_distances"):
            lt.LatentTree(**{option: np.eye(3)}).fit(data.X)


def test_it_is_cloned_and_saved(data: Any, tmp_path: Path) -> None:
    tree = named(data.tree)
    model = clone(lt.LatentTree(2, structure=tree, **SEED)).fit(data.X)
    model.save(tmp_path / "m.ltree")
    again = lt.load(tmp_path / "m.ltree")
    assert kept(again, tree)
    assert isinstance(again.structure, str)
    refitted = clone(again).fit(data.X)
    assert kept(refitted, tree)
    assert refitted.score(data.X) == pytest.approx(model.score(data.X), abs=1e-6)


def test_states_may_grow_where_the_tree_stays() -> None:
    # x1 stands inside the tree, where learning would hang it from a hidden copy
    rng = np.random.default_rng(0)
    state = rng.integers(0, 6, 4000)
    chances = rng.dirichlet(np.full(3, 0.3), (6, 6))
    X = np.column_stack(
        [(chances[j][state].cumsum(axis=1) < rng.random((4000, 1))).sum(axis=1) for j in range(6)]
    )
    tree = lt.Tree.from_newick("(x0,x2,x3,(x4,x5)x1)top;", [f"x{j}" for j in range(6)])
    for n_states in (6, "auto"):
        model = lt.LatentTree(n_states, structure=tree, **SEED).fit(X)
        assert kept(model, tree)
        assert np.isfinite(model.score(X))
        assert model.diagnostics_.n_states > 2
    assert kept(lt.LatentTree(3, structure=tree, refine=None, **SEED).fit(X), tree)


def test_sparse_and_missing_values(data: Any) -> None:
    ones = sparse.csr_matrix(data.X)
    model = lt.LatentTree(structure=named(data.tree), **SEED).fit(ones)
    assert kept(model, named(data.tree))
    X = data.X.astype(float)
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    gapped = lt.LatentTree(2, structure=named(data.tree), **SEED).fit(X)
    assert kept(gapped, named(data.tree))
    assert lt.metrics.parameter_error(gapped, data) < 0.1


def test_numbers_of_every_family_and_those_inside_the_tree() -> None:
    data = lt.datasets.make_latent_tree(
        10, family="mixed", n_samples=1500, random_state=0, edge_length=0.4
    )
    model = lt.LatentTree(2, structure=data.tree, family=data.family, **SEED).fit(data.X)
    assert model.tree_.same_topology(data.tree)
    assert (model.tree_.lengths > 0).all()
    rng = np.random.default_rng(0)
    h = rng.random(800) < 0.5
    X = pd.DataFrame({name: rng.normal(2.0 * h) for name in "abcdef"})
    chain = lt.Tree.from_newick("(a,b,(c,d,(e)f)mid)top;", observed=list("abcdef"))
    model = lt.LatentTree(2, structure=chain, **SEED).fit(X)
    assert {"mid", "top"} < set(model.tree_.hidden_names)
    assert model.tree_.n_hidden == 3
    assert "stood between other variables" in str(model.diagnostics_)


def test_gaussian_trees(data: Any) -> None:
    made = lt.datasets.make_latent_tree(
        8, hidden="gaussian", family="gaussian", n_states=1, dim=1, n_samples=2000, random_state=0
    )
    tree = named(made.tree)
    model = lt.LatentTree(hidden="gaussian", structure=tree, **SEED).fit(made.X)
    assert kept(model, tree)
    np.testing.assert_allclose(
        model.tree_.path_lengths(), tree.path_lengths(), atol=0.5
    )  # of 2,000 samples
    inner = lt.Tree.from_newick("(x0,x1,(x2,x3)x4,(x5,x6)x7);")
    found = lt.LatentTree(hidden="gaussian", structure=inner, **SEED).fit(made.X)
    assert found.tree_.same_topology(inner)


def test_one_and_two_variables() -> None:
    X = np.random.default_rng(0).integers(0, 2, (200, 2))
    model = lt.LatentTree(structure="(x0)x1;", **SEED).fit(X)
    assert model.tree_.n_edges == 1
    assert np.isfinite(model.score(X))


def test_kept_distances(data: Any) -> None:
    model = lt.LatentTree(2, structure=data.tree, keep_distances=True, **SEED).fit(data.X)
    assert model.distances_.values.shape == (9, 9)


def test_the_same_model_whatever_the_number_of_threads(data: Any) -> None:
    one, two = (lt.LatentTree(2, structure=data.tree, n_jobs=n, **SEED).fit(data.X) for n in (1, 2))
    same: NDArray[Any] = np.array(
        [np.array_equal(a, b) for a, b in zip(one.model_.cpts, two.model_.cpts, strict=True)]
    )
    assert same.all()
