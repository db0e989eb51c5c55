"""EM in batches, stopped by held-out samples: against the slow twin, weights, patience."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from tests.reference.minibatch_em import slow_averaged, slow_batch_passes
from tests.reference.refine import even_targets, slow_em

from latenttree.data import Table, as_table
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.model.inference import Evidence
from latenttree.model.likelihood import total_log_likelihood
from latenttree.model.samples import Samples, marginals
from latenttree.model.tree_model import TreeModel
from latenttree.refinement import minibatch_em
from latenttree.refinement.minibatch_em import (
    DECAY,
    DELAY,
    averaged_em,
    batch_em,
    batch_smoothing,
    rows_of_a_pass,
)
from latenttree.refinement.tree_problem import OPENING

SMALL = 10
"""Samples in a batch, for tables of a few dozen."""


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minibatch_em, "BATCH", SMALL)


def data_of(seed: int, n: int, p: int = 5, k: int = 2, **options: Any) -> tuple[TreeModel, Any]:
    settings = {"edge_length": 0.5, "n_samples": n, "shape": "caterpillar"} | options
    data = make_latent_tree(p, k, k, random_state=seed, **settings)
    return data.model, data.X


def check_same(one: TreeModel, other: TreeModel, atol: float) -> None:
    for x, y in zip(one.cpts, other.cpts, strict=True):
        np.testing.assert_allclose(x, y, atol=atol)
    assert one.emissions.keys() == other.emissions.keys()
    for v, emission in one.emissions.items():
        np.testing.assert_allclose(emission.vector(), other.emissions[v].vector(), atol=atol)


def value(model: TreeModel, samples: Samples) -> float:
    return total_log_likelihood(model, samples)


# ---- against the twin ----------------------------------------------------------------------------


def batches_of(codes: Any, n_passes: int, seed: int) -> list[list[Any]]:
    """The batches of all passes, drawn as those of `batch_em` are."""
    rng, n = np.random.default_rng(seed), len(codes)
    orders = [rng.permutation(n) for _ in range(n_passes)]
    return [[codes[places] for places in np.array_split(o, n // SMALL)] for o in orders]


def opened(model: TreeModel, target: Any) -> TreeModel:
    cpts = [
        (1 - OPENING) * c + OPENING * t[:, None] for c, t in zip(model.cpts, target, strict=True)
    ]
    return TreeModel(model.tree, model.root, tuple(cpts))


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("seed", range(3))
def test_passes_are_the_slow_ones(seed: int) -> None:
    """Without held-out samples the last model, with them the best of those after each pass."""
    model, codes = data_of(seed, 55)
    train, held_out = codes[:35], codes[35:]
    shares = [np.bincount(x, minlength=2) / 35 for x in train.T]
    target, weight = even_targets(model, shares), batch_smoothing(model, 0.7)
    assert weight == 0.35
    expected = slow_batch_passes(
        opened(model, target), batches_of(train, 4, seed), target, weight, DECAY, DELAY
    )
    table, other = Samples(as_table(train)), Samples(as_table(held_out))
    options: dict[str, Any] = {"smoothing": 0.7, "marginals": shares, "seed": seed, "max_passes": 4}
    last = batch_em(model, table, None, **options)
    check_same(last.model, expected[-1], 1e-10)
    assert (last.held_out, last.n_passes, last.converged) == ([], 4, True)
    best = batch_em(model, table, other, **options)
    scores = [value(m, other) / 20 for m in expected]
    np.testing.assert_allclose(best.held_out, scores, atol=1e-10)
    assert best.n_passes == int(np.argmax(scores)) + 1
    check_same(best.model, expected[best.n_passes - 1], 1e-10)


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("seed", range(3))
def test_averages_are_the_slow_ones(seed: int) -> None:
    model, codes = data_of(seed, 35)
    shares = [np.bincount(x, minlength=2) / 35 for x in codes.T]
    target, weight = even_targets(model, shares), batch_smoothing(model, 1.0)
    found = averaged_em(model, Samples(as_table(codes)), passes=3, marginals=shares, seed=seed)
    passes = batches_of(codes, 3, seed)
    expected = slow_averaged(model, passes, target, weight, minibatch_em.UNAVERAGED)
    check_same(found, expected, 1e-10)


def test_one_batch_is_one_step_of_em() -> None:
    """Fewer samples than two batches of 125 have are one batch."""
    model, codes = data_of(0, 40, k=3)
    shares = [np.bincount(x, minlength=3) / 40 for x in codes.T]
    expected = slow_em(model, Evidence(codes), 1 / 3, even_targets(model, shares), 1)
    found = averaged_em(model, Samples(as_table(codes)), marginals=shares)
    check_same(found, expected, 1e-10)


# ---- what samples count ------------------------------------------------------------------------


def table_of(kind: str, n: int = 300) -> tuple[TreeModel, Any, dict[str, Any]]:
    """A first model, samples, and the options to read them."""
    if kind in ("gaussian", "poisson"):
        model, X = data_of(0, n, family=kind)
        return model, X, {"family": kind}
    model, X = data_of(0, n, missing=0.2 if kind == "gaps" else 0.0)
    return model, sparse.csr_array(X) if kind == "sparse" else X, {}


KINDS = ("codes", "gaps", "sparse", "gaussian", "poisson")


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("kind", KINDS)
def test_a_weight_counts_as_copies_do(kind: str) -> None:
    """The draws of a sample of weight 3 have the places of three equal samples, so that batches
    have the same samples, and models differ by rounding alone."""
    model, X, options = table_of(kind)
    weights = np.random.default_rng(0).integers(1, 4, 300)
    copies = np.repeat(np.arange(300), weights)
    tables = as_table(X, sample_weight=weights, **options), as_table(X[copies], **options)
    for learn in (passes_with_held_out, averages):
        one, other = (learn(model, table) for table in tables)
        check_same(one, other, 1e-6)  # rounding of float32 features grows in 100 steps


def passes_with_held_out(model: TreeModel, table: Table) -> TreeModel:
    """Every second draw is held out."""
    samples = Samples(table)
    draws = samples.draws()
    train, held_out = samples.of_draws(draws[::2]), samples.of_draws(draws[1::2])
    return batch_em(model, train, held_out, max_passes=4, marginals=marginals(table)).model


def averages(model: TreeModel, table: Table) -> TreeModel:
    return averaged_em(model, Samples(table), passes=2, marginals=marginals(table))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("learn", [passes_with_held_out, averages])
def test_deterministic(learn: Callable[..., TreeModel], kind: str) -> None:
    model, X, options = table_of(kind, 1_000)
    one, other = (learn(model, as_table(X, **options)) for _ in range(2))
    check_same(one, other, 0)
    for cpt in one.cpts:
        np.testing.assert_allclose(cpt.sum(axis=0), 1, atol=1e-12)


@pytest.mark.parametrize("kind", ["codes", "sparse", "gaussian"])
def test_threads_do_not_change_the_model(kind: str) -> None:
    model, X, options = table_of(kind, 1_000)
    samples = Samples(as_table(X, **options))
    found = [batch_em(model, samples, None, max_passes=2, n_jobs=n).model for n in (1, 2)]
    check_same(found[0], found[1], 0)


# ---- when passes end -----------------------------------------------------------------------------


def many_states(model: TreeModel, k: int) -> TreeModel:
    """Random CPTs with k states at every hidden node: too many for few samples."""
    rng, p = np.random.default_rng(0), model.tree.n_observed
    dims = [*model.dims[:p].tolist(), *[k] * model.tree.n_hidden]
    above = [1 if u < 0 else dims[u] for u in model.parents.tolist()]
    cpts = [rng.dirichlet(np.ones(d), size=w).T for d, w in zip(dims, above, strict=True)]
    return TreeModel(model.tree, model.root, tuple(cpts))


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("patience", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_held_out_samples_end_the_passes(
    seed: int, patience: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With eight states the 150 samples are learned by heart before 60 passes are over: the best
    model for others comes after 1 to 6 passes, in twelve seeds, and the end so many later."""
    monkeypatch.setattr(minibatch_em, "PATIENCE", patience)
    truth, codes = data_of(seed, 1_150, p=6)
    train, held_out = (Samples(as_table(x)) for x in (codes[:150], codes[150:]))
    fit = batch_em(many_states(truth, 8), train, held_out, max_passes=60, smoothing=0.01)
    assert len(fit.held_out) == fit.n_passes + patience < 60
    assert fit.n_passes == int(np.argmax(fit.held_out)) + 1
    assert fit.converged
    assert value(fit.model, held_out) == pytest.approx(1_000 * max(fit.held_out), rel=1e-12)
    again = batch_em(many_states(truth, 8), train, None, max_passes=60, smoothing=0.01)
    assert value(again.model, train) > value(fit.model, train)
    assert value(again.model, held_out) < value(fit.model, held_out)


def test_passes_that_gain_to_the_end_have_not_converged() -> None:
    """With one batch a pass is a step of EM, and the first steps from random CPTs gain much."""
    truth, codes = data_of(0, 2_000, p=6)
    train, held_out = (Samples(as_table(x)) for x in (codes[:200], codes[200:]))
    fit = batch_em(many_states(truth, 2), train, held_out, max_passes=3)
    assert (np.diff(fit.held_out) > 0).all()
    assert (fit.n_passes, fit.converged) == (3, False)


@pytest.mark.parametrize("seed", range(5))
def test_batches_lose_little(seed: int) -> None:
    """EM gains about half a unit for each of 19 parameters above the truth. Of that the noise of
    batches leaves 2 to 13 in twenty seeds, 6 to 16 after averaging; and from random CPTs, which are
    2,000 below, 1 to 14."""
    truth, codes = data_of(seed, 2_000, p=6)
    samples = Samples(as_table(codes))
    shares = marginals(samples.table)
    start = value(truth, samples)
    passes = batch_em(truth, samples, None, max_passes=10, marginals=shares).model
    assert value(passes, samples) > start
    averaged = averaged_em(passes, samples, passes=3, marginals=shares)
    assert value(averaged, samples) > value(passes, samples)
    far = many_states(truth, 2)
    found = batch_em(far, samples, None, max_passes=20, marginals=shares).model
    assert value(found, samples) > start - 5


def test_pseudo_samples_are_shared_by_the_states() -> None:
    truth, _ = data_of(0, 2, p=6)
    shared = [batch_smoothing(many_states(truth, k), 3.0) for k in (1, 2, 8, 16, 32)]
    assert shared == [3.0, 1.5, 0.375, 0.1875, 0.1875]
    assert [batch_smoothing(many_states(truth, k), 3.0, 4) for k in (2, 8)] == [1.5, 0.75]


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize(("first", "more"), [(1, 3), (3, 2)])
def test_passes_go_on_where_they_were_left(first: int, more: int) -> None:
    """Passes in two parts are those in one, to the last bit."""
    truth, codes = data_of(1, 1_055, p=6)
    train, held_out = (Samples(as_table(x)) for x in (codes[:55], codes[55:]))
    start, shares = many_states(truth, 2), marginals(train.table)
    begun = batch_em(start, train, held_out, max_passes=first, marginals=shares)
    parts = batch_em(begun.model, train, held_out, max_passes=more, marginals=shares, before=begun)
    whole = batch_em(start, train, held_out, max_passes=first + more, marginals=shares)
    assert parts.held_out == whole.held_out
    assert parts.n_passes == whole.n_passes
    check_same(parts.model, whole.model, atol=0)


@pytest.mark.usefixtures("small_batches")
def test_passes_that_have_ended_do_not_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minibatch_em, "PATIENCE", 2)
    truth, codes = data_of(0, 1_150, p=6)
    train, held_out = (Samples(as_table(x)) for x in (codes[:150], codes[150:]))
    ended = batch_em(many_states(truth, 8), train, held_out, max_passes=60, smoothing=0.01)
    assert len(ended.held_out) < 60
    again = batch_em(ended.model, train, held_out, max_passes=9, smoothing=0.01, before=ended)
    assert again.held_out == ended.held_out


def test_rows_of_a_pass() -> None:
    """A row of weight w is in a batch unless none of its draws is; rows without weights once."""
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 400, 60).astype(float)
    table = as_table(rng.integers(0, 2, (60, 4)))
    assert rows_of_a_pass(Samples(table)) == 60
    samples = Samples(table, weights=weights)
    draws = samples.draws()
    n_batches = len(draws) // minibatch_em.BATCH
    parts = np.array_split(rng.permutation(draws), n_batches)
    counted = sum(len(np.unique(part)) for part in parts)
    assert rows_of_a_pass(samples) == pytest.approx(counted, rel=0.05)
