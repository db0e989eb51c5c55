"""A pass of EM in small batches: against the slow twin, and as good as EM on all samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from tests.reference.online_em import slow_online_pass
from tests.reference.refine import even_targets

from latenttree.evaluation.datasets import make_latent_tree
from latenttree.model.likelihood import total_log_likelihood
from latenttree.model.samples import Chunk, InMemory
from latenttree.model.tree_model import TreeModel
from latenttree.refinement import online_em
from latenttree.refinement.tree_em import run_em
from latenttree.refinement.tree_problem import TreeProblem


def problem_of(model: TreeModel, rows: Any, n_jobs: int = 1) -> TreeProblem:
    return TreeProblem(model, InMemory([Chunk(rows)]), n_jobs=n_jobs)


def data_of(seed: int, n: int, p: int = 5, **options: Any) -> tuple[TreeModel, Any]:
    settings = {"edge_length": 0.5, "n_samples": n} | options
    data = make_latent_tree(p, 2, 2, random_state=seed, **settings)
    return data.model, np.asarray(data.X)


@pytest.mark.parametrize("seed", range(3))
def test_a_pass_is_the_slow_one(seed: int) -> None:
    model, codes = data_of(seed, 30, shape="caterpillar")
    problem, target = problem_of(model, codes), even_targets(model, model.marginals[:5])
    mean = problem.on(np.arange(0, 30, 3)).sums(problem.of_model(model)).times(1 / 10)
    batches = np.split(np.arange(30), [7, 12])
    found = online_em.online_pass(problem, mean, batches)
    parts = [codes[b] for b in batches]
    expected = slow_online_pass(model, codes[::3], parts, target, online_em.DECAY)
    for x, y in zip(problem.as_model(found).cpts, expected.cpts, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-10)


def test_every_sample_is_in_one_batch() -> None:
    sizes = [5000, 1, 3000]
    found = online_em.batch_order(sizes)
    for which, size in enumerate(sizes):
        index = np.concatenate([x for w, x in found if w == which])
        assert np.array_equal(np.sort(index), np.arange(size))
    assert len(found) == 8  # 8,001 samples, 1,024 in a batch, and a chunk of one sample
    assert len(online_em.batch_order([10**6])) == online_em.MOST_BATCHES
    # chunks take turns: those of the first do not come first
    assert {w for w, _ in found[:4]} >= {0, 2}


def test_weights_count_as_copies_do() -> None:
    model, codes = data_of(0, 400)
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 3, 400).astype(float)
    times = weights.astype(int)
    copies = np.repeat(np.arange(400), times)
    found = []
    for samples, cut in ((Chunk(codes, weights=weights), 150), (codes[copies], times[:150].sum())):
        problem = TreeProblem(model, InMemory([samples]))
        mean = problem.sums(problem.of_model(model))
        n = len(problem.samples)
        found.append(online_em.online_pass(problem, mean, np.split(np.arange(n), [cut])))
    one, other = found
    np.testing.assert_allclose(one, other, atol=1e-12)


@pytest.mark.parametrize("kind", ["codes", "sparse"])
def test_threads_do_not_change_a_pass(kind: str) -> None:
    model, codes = data_of(1, 6000, p=12)
    rows = codes if kind == "codes" else sparse.csr_array(codes)
    found = [online_em.BatchPass(problem_of(model, rows, n)) for n in (1, 2)]
    assert np.array_equal(found[0].theta, found[1].theta)


def test_many_samples_need_few_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass in batches and one or two steps lose less than a twentieth of sampling noise (1/2
    for each parameter) against EM to the end, and `converged` says by what it ended."""
    data = make_latent_tree(16, 2, 3, edge_length=0.4, n_samples=40_000, random_state=3)
    truth, codes = data.model, np.asarray(data.X)
    rng = np.random.default_rng(0)
    tables = [t * np.exp(0.3 * rng.normal(size=t.shape)) for t in truth.cpts]
    start = TreeModel(truth.tree, truth.root, tuple(t / t.sum(axis=0) for t in tables))
    chunks = InMemory([codes[:25_000], codes[25_000:]])
    best = run_em(start, chunks, max_steps=500, tolerance=1e-9)
    quick = run_em(start, chunks, max_steps=500, online_from=40_000)
    assert quick.converged
    assert len(quick.trace) < len(best.trace) / 2
    reached = total_log_likelihood(quick.model, chunks)
    assert reached > best.trace[-1] - 0.025 * truth.n_parameters - 10  # 10: the prior
    # asked for more, it gives more
    exact = run_em(start, chunks, max_steps=500, tolerance=1e-12, online_from=40_000)
    assert exact.trace[-1] == pytest.approx(best.trace[-1], abs=0.01)
    # the first steps bring whole units of log-likelihood, so that five of them cannot be enough
    monkeypatch.setattr("latenttree.refinement.tree_em.ONLINE_MIN_STEPS", 5)
    short = run_em(start, chunks, max_steps=5, tolerance=1e-12, online_from=40_000)
    assert len(short.trace) == 6
    assert not short.converged


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_families_pass_in_batches_too(family: str) -> None:
    data = make_latent_tree(6, 2, family=family, n_samples=4000, random_state=0)
    chunks = InMemory([chunk_of_values(data)])
    best, quick = (run_em(data.model, chunks, tolerance=t, online_from=1000) for t in (1e-9, 1e-7))
    assert quick.trace[-1] > best.trace[-1] - 0.1 * data.model.n_parameters


def chunk_of_values(data: Any) -> Chunk:
    from latenttree.data import as_table
    from latenttree.model.samples import Samples

    return next(iter(Samples(as_table(data.X, family=data.family)).chunks()))
