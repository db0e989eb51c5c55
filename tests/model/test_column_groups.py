"""Sums over groups of codes against evidence on their neighbours, which reads every group."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy import sparse

from latenttree import LatentTree
from latenttree.data import as_table
from latenttree.evaluation.simulation import make_latent_tree
from latenttree.model.column_groups import ColumnGroups
from latenttree.model.emissions import MultiHot, from_many_sums
from latenttree.model.likelihood import total_log_likelihood
from latenttree.model.passes import ExpectedCounts
from latenttree.model.samples import Chunk, Samples
from latenttree.model.tree_model import TreeModel
from latenttree.refinement.tree_problem import TreeProblem, mean_statistics


def model_of(seed: int, p: int = 6, k: int = 3) -> TreeModel:
    """Random groups of 1 to 5 codes on a random tree."""
    rng = np.random.default_rng(seed)
    drawn = make_latent_tree(p, k, k, n_samples=2, random_state=seed).model
    widths = rng.integers(1, 6, p)
    emissions = {
        v: MultiHot(
            rng.uniform(0.2, 0.95, k), rng.uniform(0.01, 0.9, (int(widths[v]), k)), "sparse"
        )
        for v in range(p)
    }
    tables = [t if v >= p else np.ones((1, k)) for v, t in enumerate(drawn.cpts)]
    return TreeModel(drawn.tree, drawn.root, tuple(tables), emissions)


def samples_of(
    model: TreeModel, seed: int, n: int = 200, weights: np.ndarray | None = None
) -> Samples:
    rng = np.random.default_rng(seed)
    k = model.dims[-1]
    blocks = [
        sparse.csr_array(model.emissions[v].sample(rng.integers(0, k, n), rng))
        for v in range(model.tree.n_observed)
    ]
    table = as_table(blocks, family="multihot", sample_weight=weights, drop_constant=False)
    return Samples(table)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("k", [2, 3])
def test_sums_are_those_of_evidence(seed: int, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(seed, k=k)
    weights = None if seed % 2 else np.random.default_rng(seed).uniform(0, 3, 200)
    chunks = samples_of(model, seed, weights=weights)
    problem = TreeProblem(model, chunks)
    assert ColumnGroups.of(model) is not None
    theta = problem.of_model(model)
    fast = problem.sums(theta)
    value = total_log_likelihood(model, chunks)
    monkeypatch.setattr(ColumnGroups, "of", classmethod(lambda cls, model: None))
    slow = problem.sums(theta)
    assert fast.value == pytest.approx(slow.value, rel=1e-12)
    first = sum(t.size for t in model.cpts[: model.tree.n_observed])
    np.testing.assert_allclose(fast.counts[first:], slow.counts[first:], rtol=1e-9, atol=1e-9)
    for v, sums in slow.statistics.items():
        np.testing.assert_allclose(fast.statistics[v], sums, rtol=1e-9, atol=1e-9)
    assert value == pytest.approx(slow.value, rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_means_are_those_of_every_group(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(seed)
    chunks = samples_of(model, seed, weights=np.random.default_rng(seed).uniform(0, 3, 200))
    fast = mean_statistics(model, chunks)
    monkeypatch.setattr(ColumnGroups, "of", classmethod(lambda cls, model: None))
    slow = mean_statistics(model, chunks)
    for v, means in slow.items():
        np.testing.assert_allclose(fast[v], means, rtol=1e-12, atol=1e-12)


def test_missing_rows_are_left_to_others() -> None:
    model = model_of(0)
    chunks = samples_of(model, 0)
    groups = ColumnGroups.of(model)
    assert groups is not None
    chunk = next(iter(chunks.chunks()))
    assert groups.ones(chunk) is not None
    known = np.ones((len(chunk), model.tree.n_observed), dtype=bool)
    gaps = Chunk(chunk.rows, chunk.arrays, None, chunk.stored, known)
    assert groups.ones(gaps) is None
    filled = Chunk(chunk.rows, chunk.arrays, None, chunk.stored * 0.5)
    assert groups.ones(filled) is None
    sums = ExpectedCounts(model)
    one, other = sums.start(), sums.start()
    sums.add(one, chunk, 1)
    sums.add(other, gaps, 1)
    assert "groups" in one
    assert "groups" not in other
    np.testing.assert_allclose(sums.finish(one).counts, sums.finish(other).counts, atol=1e-9)


def test_certain_codes_are_left_to_others() -> None:
    model = model_of(0)
    sure = MultiHot(np.full(3, 0.5), np.full((40, 3), 1 - 1e-16), "sparse")
    certain = TreeModel(model.tree, model.root, model.cpts, {**model.emissions, 0: sure})
    groups = ColumnGroups.of(certain)
    assert groups is not None
    assert groups.backend() is None


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_many_groups_at_once_are_each_alone(smoothing: float) -> None:
    model = model_of(3, p=8, k=2)
    chunks = samples_of(model, 3)
    problem = TreeProblem(model, chunks)
    sums = problem.sums(problem.of_model(model)).statistics
    sums[0][...] = 0.0  # never seen
    sums[1][2:] = 0.0
    means = problem.means
    together = from_many_sums(model.emissions, sums, smoothing, means)  # type: ignore[arg-type]
    for v, group in model.emissions.items():
        alone = group.from_sums(sums[v], smoothing, means[v])
        assert isinstance(alone, MultiHot)
        np.testing.assert_allclose(together[v].none, alone.none, rtol=1e-12)
        np.testing.assert_allclose(together[v].codes, alone.codes, rtol=1e-9)


def test_other_families_are_left_to_others() -> None:
    drawn = make_latent_tree(6, 2, 3, n_samples=2, random_state=0)
    assert ColumnGroups.of(drawn.model) is None


def test_a_fit_is_that_of_dense_groups() -> None:
    """ColumnGroups as dense blocks and as CSR blocks are the same variables."""
    model = model_of(1, p=9, k=2)
    rng = np.random.default_rng(0)
    states = make_latent_tree(9, 2, 2, n_samples=3_000, random_state=1).X
    blocks = [model.emissions[v].sample(states[:, v], rng) for v in range(9)]
    fit = partial(LatentTree, 2, family="multihot", random_state=0, max_iter=10, tol=1e-6)
    thin = fit().fit([sparse.csr_array(b) for b in blocks])
    thick = fit().fit([b.toarray() for b in blocks])
    np.testing.assert_array_equal(thin.tree_.edges, thick.tree_.edges)
    traces = (m.diagnostics_.log_likelihood_trace for m in (thin, thick))
    np.testing.assert_allclose(*traces, rtol=1e-9)
