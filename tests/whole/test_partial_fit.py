"""Learning from batches is learning from all of them together."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from pandas.api.types import union_categoricals
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import latenttree as lt
from latenttree import estimator
from latenttree.errors import DataError
from latenttree.evaluation.datasets import make_latent_tree

N = 3000
CODES = make_latent_tree(9, 2, 4, n_samples=N, random_state=0).X
WORDS = np.array(["never", "seldom", "often", "always"])
ENDS = [0, 1, *np.linspace(1, N, 100, dtype=int)[1:].tolist()]  # 100 batches, the first of one row


def learner(**options: Any) -> lt.LatentTree:
    return lt.LatentTree(**({"random_state": 0, "n_jobs": 1, "search": False} | options))


def batched(parts: list[Any], weights: Any = None, **options: Any) -> lt.LatentTree:
    model = learner(**options)
    for i, part in enumerate(parts):
        model.partial_fit(part, sample_weight=None if weights is None else weights[i])
    return model


def pieces(X: Any) -> list[Any]:
    return [X[a:b] for a, b in pairwise(ENDS)]


def check_equal(one: lt.LatentTree, other: lt.LatentTree) -> None:
    """Tree, parameters and what is known of the data, to the last bit."""
    assert one.to_newick() == other.to_newick()
    np.testing.assert_array_equal(one.tree_.lengths, other.tree_.lengths)
    np.testing.assert_array_equal(one.diagnostics_.support, other.diagnostics_.support)
    assert one.schema_.to_json() == other.schema_.to_json()
    assert one.n_features_in_ == other.n_features_in_
    assert one.n_iter_ == other.n_iter_
    for name in ("cpts", "means", "loadings", "noise"):
        pairs = zip(getattr(one.model_, name, ()), getattr(other.model_, name, ()), strict=True)
        assert all(np.array_equal(a, b) for a, b in pairs), name
    emissions = getattr(one.model_, "emissions", {})
    assert list(emissions) == list(getattr(other.model_, "emissions", {}))
    for v, emission in emissions.items():
        known = other.model_.emissions[v].to_arrays()
        assert all(np.array_equal(a, known[name]) for name, a in emission.to_arrays().items())
    assert hasattr(one, "feature_names_in_") == hasattr(other, "feature_names_in_")


# ---- equal to fit -------------------------------------------------------------------------


def gaps(values: Any, seed: int) -> list[Any]:
    missing = np.random.default_rng(seed).random(N) < 0.1
    return [None if gap else value for value, gap in zip(values, missing, strict=True)]


def columns() -> dict[str, Any]:
    """Nine columns of every sort; "late" has a category that comes in batch 57, "still" only one
    value in batch 20."""
    rng = np.random.default_rng(1)
    late, still = WORDS[CODES[:, 1]], CODES[:, 2].copy()
    late[: ENDS[56]][late[: ENDS[56]] == "always"] = "often"
    still[ENDS[19] : ENDS[20]] = 3
    return {
        "whole": CODES[:, 0],
        "late": late.tolist(),
        "still": still,
        "real": (CODES[:, 3] + rng.normal(size=N)).tolist(),
        "gappy": CODES[:, 4].tolist(),
        "bit": (CODES[:, 5] > 1).tolist(),
        "words": WORDS[CODES[:, 6]].tolist(),
        "count": rng.poisson(1.0 + 2 * CODES[:, 7]),
        "single": (CODES[:, 8] + rng.normal(size=N)).astype(np.float32),
    }


FAMILY = {"count": "poisson"}


def pandas_pieces() -> list[pd.DataFrame]:
    """Categories and types are those of each piece: integers with gaps are floats where there are
    any, categories only those of the piece."""
    given = columns()
    made = []
    for a, b in pairwise(ENDS):
        part = pd.DataFrame({name: values[a:b] for name, values in given.items()})
        part["real"] = gaps(given["real"], 2)[a:b]
        gappy = gaps(given["gappy"], 3)[a:b]
        part["gappy"] = gappy if a > N // 2 else given["gappy"][a:b]
        part["words"] = gaps(given["words"], 4)[a:b]
        part["bit"] = gaps(given["bit"], 5)[a:b]
        part["late"] = pd.Categorical(gaps(given["late"], 6)[a:b])
        made.append(part)
    return made


def whole_pandas(parts: list[pd.DataFrame]) -> pd.DataFrame:
    whole = pd.concat([part.drop(columns="late") for part in parts], ignore_index=True)
    late = union_categoricals([part["late"] for part in parts])
    whole.insert(1, "late", late)
    return whole


def test_mixed_pandas_with_gaps() -> None:
    parts = pandas_pieces()
    types = {str(part["gappy"].dtype) for part in parts}
    assert types == {"int64", "float64"}
    assert "always" not in set().union(*(set(part["late"]) for part in parts[:56]))
    assert "always" in set(parts[56]["late"])
    whole = whole_pandas(parts)
    check_equal(batched(parts, family=FAMILY), learner(family=FAMILY).fit(whole))


def test_mixed_polars_with_gaps() -> None:
    given = columns()
    changed = {
        "real": pl.Series(gaps(given["real"], 2)),
        "late": pl.Series(gaps(given["late"], 6), dtype=pl.Categorical),
        "words": pl.Series(gaps(given["words"], 4)),
        "bit": pl.Series(gaps(given["bit"], 5)),
        "gappy": pl.Series(gaps(given["gappy"], 3)).cast(pl.Float64),
    }
    whole = pl.DataFrame(given | changed)
    parts = pieces(whole)
    whole_numbers = pl.col("gappy").cast(pl.Int64)
    parts[:50] = [part.with_columns(whole_numbers) for part in parts[:50]]
    assert {part["gappy"].dtype for part in parts} == {pl.Int64, pl.Float64}
    model = batched(parts, family=FAMILY)
    check_equal(model, learner(family=FAMILY).fit(whole))
    assert model.feature_names_in_.tolist() == list(given)


def sparse_blocks() -> dict[str, Any]:
    rng = np.random.default_rng(2)
    hot = (rng.random((N, 9, 3)) < 0.1 + 0.2 * CODES[:, :, None]).astype(int)
    named = {f"hot{v}": sparse.csr_array(hot[:, v]) for v in range(3)}
    named |= {f"real{v}": CODES[:, [v, v]] + rng.normal(size=(N, 2)) for v in range(3, 6)}
    return named | {f"code{v}": CODES[:, v] for v in range(6, 9)}


ARRAYS: dict[str, Callable[[], Any]] = {
    "codes": lambda: CODES,
    "text": lambda: WORDS[CODES],
    "bool": lambda: CODES > 1,
    "float32": lambda: (CODES + np.random.default_rng(0).normal(size=CODES.shape)).astype("f4"),
    "sparse": lambda: sparse.csr_array((CODES > 1).astype(np.int8)),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_and_sparse_binary_matrices(name: str) -> None:
    X = ARRAYS[name]()
    check_equal(batched(pieces(X)), learner().fit(X))


def test_with_the_search_for_the_best_tree() -> None:
    check_equal(batched(pieces(CODES), search=True), learner(search=True).fit(CODES))


def test_blocks() -> None:
    X = sparse_blocks()
    parts = [{name: block[a:b] for name, block in X.items()} for a, b in pairwise(ENDS)]
    check_equal(batched(parts), learner().fit(X))
    listed = [list(part.values()) for part in parts]
    check_equal(batched(listed), learner().fit(list(X.values())))


def test_groups_of_columns() -> None:
    X = np.hstack([np.eye(4)[CODES[:, v]] for v in range(9)])
    groups = np.repeat(np.arange(9), 4)
    check_equal(batched(pieces(X), groups=groups), learner(groups=groups).fit(X))


def test_gaussian_trees() -> None:
    X = CODES + np.random.default_rng(0).normal(size=CODES.shape)
    check_equal(batched(pieces(X), hidden="gaussian"), learner(hidden="gaussian").fit(X))


def test_weights() -> None:
    w = np.random.default_rng(0).integers(0, 4, N)
    check_equal(batched(pieces(CODES), pieces(w)), learner().fit(CODES, sample_weight=w))
    some = [part if i % 2 else None for i, part in enumerate(pieces(w))]
    filled = [np.ones(b - a) if s is None else s for s, (a, b) in zip(some, pairwise(ENDS))]  # noqa: B905
    known = learner().fit(CODES, sample_weight=np.concatenate(filled))
    check_equal(batched(pieces(CODES), some), known)


# ---- when it is learned -------------------------------------------------------------------


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Rows of every fit."""
    seen: list[int] = []
    fit = lt.LatentTree.fit

    def counted(self: Any, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        seen.append(len(X))
        return fit(self, X, y, sample_weight)

    monkeypatch.setattr(lt.LatentTree, "fit", counted)
    return seen


FIRST_USES: dict[str, Callable[[Any], Any]] = {
    **{
        name: lambda model, name=name: getattr(model, name)
        for name in ("tree_", "model_", "diagnostics_", "schema_", "n_iter_", "n_features_in_")
    },
    "transform": lambda model: model.transform(CODES[:5]),
    "predict": lambda model: model.predict(CODES[:5]),
    "score_samples": lambda model: model.score_samples(CODES[:5]),
    "sample": lambda model: model.sample(3, random_state=0),
    "to_newick": lambda model: model.to_newick(),
    "names": lambda model: model.get_feature_names_out(),
    "finalize": lambda model: model.finalize(),
}


@pytest.mark.parametrize("use", FIRST_USES)
def test_the_first_use_learns_once(use: str, fits: list[int]) -> None:
    model = batched([CODES[:1000], CODES[1000:]])
    assert fits == []
    FIRST_USES[use](model)
    assert fits == [N]
    for again in FIRST_USES.values():
        again(model)
    assert fits == [N]


def test_what_does_not_learn(fits: list[int]) -> None:
    model = batched([CODES[:1000]])
    for harmless in (repr, copy.copy, copy.deepcopy, pickle.dumps, clone, check_is_fitted):
        harmless(model)
    model.get_params()
    model.set_params(min_support=0.6)
    model._repr_html_()
    assert not hasattr(model, "classes_")
    assert fits == []


def test_names_that_are_not_there_after_learning() -> None:
    model = batched([CODES[:1000]])
    for name in ("distances_", "feature_names_in_", "unknown_", "unknown"):
        assert not hasattr(model, name)
    with pytest.raises(AttributeError, match="'LatentTree' object has no attribute 'distances_'"):
        _ = model.distances_
    assert batched([CODES[:1000]], keep_distances=True).distances_ is not None


def test_an_estimator_without_batches() -> None:
    model = learner()
    for name in ("tree_", "model_", "schema_", "n_features_in_", "_batches"):
        assert not hasattr(model, name)
    for ask in (model.finalize, lambda: check_is_fitted(model), lambda: model.transform(CODES)):
        with pytest.raises(NotFittedError):
            ask()
    fitted = learner().fit(CODES[:1000])
    assert fitted.finalize() is fitted


def test_more_batches_after_learning(fits: list[int]) -> None:
    model = batched([CODES[:1000]]).finalize()
    first = model.tree_
    model.partial_fit(CODES[1000:2000])
    assert "tree_" not in vars(model)
    assert model.tree_ is not first
    model.partial_fit(CODES[2000:])
    assert model.finalize().finalize() is model
    assert fits == [1000, 2000, N]
    check_equal(model, learner().fit(CODES))


def test_fit_forgets_batches() -> None:
    model = batched([CODES[:1000], CODES[1000:2000]])
    model.fit(CODES[2000:])
    check_equal(model, learner().fit(CODES[2000:]))
    assert model.finalize() is model
    model.partial_fit(CODES[:1000, :5])  # other columns: it begins anew
    assert model.n_features_in_ == 5


def test_fit_of_waiting_batches_does_not_learn_from_them(fits: list[int]) -> None:
    batched([CODES[:1000]]).fit(CODES[1000:])
    assert fits == [2000]


def test_clones_forget_and_pickles_keep() -> None:
    model = batched([CODES[:1000], CODES[1000:]])
    assert "_batches" not in vars(clone(model))
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        check_equal(other, learner().fit(CODES))
        assert "tree_" not in vars(model)
    model.finalize()
    back = pickle.loads(pickle.dumps(model))
    check_equal(back, model)
    back.partial_fit(CODES[:500])
    check_equal(back, learner().fit(np.vstack([CODES, CODES[:500]])))
    check_equal(model, learner().fit(CODES))


def test_a_saved_model_has_no_batches(tmp_path: Any) -> None:
    model = batched([CODES[:1000], CODES[1000:]])
    model.save(tmp_path / "m.ltree")
    assert "_batches" not in vars(lt.load(tmp_path / "m.ltree"))


# ---- failures -----------------------------------------------------------------------------


def test_a_batch_that_does_not_fit_changes_nothing() -> None:
    parts = pandas_pieces()[:60]
    model, known = learner(family=FAMILY), learner(family=FAMILY)
    for i, part in enumerate(parts):
        model.partial_fit(part)
        known.partial_fit(part)
        if i % 20 == 7:
            with pytest.raises(DataError, match=rf"batch {i + 2}: column 'words' holds numbers"):
                model.partial_fit(part.assign(words=3))
    check_equal(model, known)


def test_a_refused_batch_leaves_what_was_learned() -> None:
    model = batched([CODES[:1000]]).finalize()
    tree = model.tree_
    with pytest.raises(ValueError, match="X has 8 features, but LatentTree is expecting 9"):
        model.partial_fit(CODES[:, :8])
    assert model.tree_ is tree


def test_learning_that_fails_can_be_repeated() -> None:
    model = batched([CODES[:1]])
    for _ in range(2):
        with pytest.raises(DataError, match=r"1 sample\(s\)"):
            _ = model.tree_
    model.partial_fit(CODES[1:]).set_params(n_states=1)
    with pytest.raises(DataError, match="n_states must be an integer >= 2"):
        model.transform(CODES[:2])
    check_equal(model.set_params(n_states=2), learner(n_states=2).fit(CODES))


def test_an_interrupted_search_keeps_the_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    model = batched([CODES[:1000], CODES[1000:]])

    def stop(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(estimator, "learn_structures", stop)
        with pytest.raises(KeyboardInterrupt):
            model.finalize()
    assert "tree_" not in vars(model)
    check_equal(model, learner().fit(CODES))


def test_an_attribute_error_inside_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    model = batched([CODES])

    def broken(*_: Any, **__: Any) -> Any:
        raise AttributeError("a mistake")

    monkeypatch.setattr(estimator, "learn_structures", broken)
    with pytest.raises(RuntimeError, match="learning from batches failed: a mistake"):
        hasattr(model, "tree_")


def test_random_states_that_move_on() -> None:
    one, two = np.random.RandomState(3), np.random.RandomState(3)
    check_equal(batched([CODES], random_state=one), learner(random_state=two).fit(CODES))
    assert one.randint(1000) == two.randint(1000)
