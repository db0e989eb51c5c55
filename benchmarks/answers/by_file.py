"""Files, read whole or part by part."""

from __future__ import annotations

from benchmarks.answers.made import (
    as_texts,
    labelled,
    patients,
    simulated,
    with_gaps,
    words,
)
from benchmarks.answers.tasks import Task, task


@task
def file_csv(seed: int) -> Task:
    """Text with gaps."""
    return Task(with_gaps(as_texts(patients(seed)), seed), file="table.csv")


@task
def file_csv_packed(seed: int) -> Task:
    """Compressed text."""
    frame = labelled(simulated(seed, 12, 2, 3).X, ["low", "middle", "high"])
    return Task(frame, {"n_states": 2}, file="table.csv.gz")


@task
def file_parquet(seed: int) -> Task:
    """Columns of all types."""
    return Task(patients(seed), file="table.parquet")


@task
def file_npy(seed: int) -> Task:
    """An array of codes."""
    return Task(simulated(seed, 12, 2, 3).X, {"n_states": 2}, file="table.npy")


@task
def file_npz(seed: int) -> Task:
    """An array of numbers."""
    data = simulated(seed, 9, family="gaussian")
    return Task(data.X, {"n_states": 2}, file="table.npz")


@task
def file_npz_sparse(seed: int) -> Task:
    """A sparse matrix."""
    return Task(words(seed, 1000, 40, 6), {"n_states": 2}, file="table.npz")


@task
def file_docword(seed: int) -> Task:
    """A bag of words."""
    return Task(words(seed, 1000, 40, 6), {"n_states": 2}, file="docword.some.txt")


@task
def file_fasta(seed: int) -> Task:
    """An alignment with gaps."""
    letters = labelled(simulated(seed, 10, 4).X, list("ACGT"))
    return Task(with_gaps(letters, seed, 0.05), {"n_states": 4}, file="taxa.fasta")


@task
def streamed_npy(seed: int) -> Task:
    """An array of codes, part by part."""
    data = simulated(seed, 12, 2, 3, n_samples=6000)
    return Task(data.X, {"n_states": 2}, file="table.npy", tight=True)


@task
def streamed_csv(seed: int) -> Task:
    """Text with gaps, part by part."""
    frame = with_gaps(as_texts(patients(seed, 20_000)), seed)
    return Task(frame, {"max_iter": 20}, file="table.csv", tight=True)


@task
def streamed_parquet(seed: int) -> Task:
    """Columns of all types, part by part."""
    frame = with_gaps(patients(seed, 12_000), seed)
    return Task(frame, {"max_iter": 20}, file="table.parquet", tight=True)


@task
def streamed_npz_sparse(seed: int) -> Task:
    """A sparse matrix, part by part."""
    return Task(words(seed, 40_000, 50, 7), {"n_states": 2}, file="table.npz", tight=True)


@task
def streamed_docword(seed: int) -> Task:
    """A bag of words, part by part."""
    return Task(words(seed, 40_000, 40, 6), {"n_states": 2}, file="docword.some.txt", tight=True)


@task
def streamed_map(seed: int) -> Task:
    """Numbers in a mapped file."""
    data = simulated(seed, 12, family="gaussian", n_samples=20_000)
    return Task(data.X, {"n_states": 2, "max_iter": 20}, file="mapped", tight=True)


@task
def pairs_on_demand(seed: int) -> Task:
    """Less memory than all pairs of words take."""
    return Task(words(seed, 400, 1500, 60), {"n_states": 2, "max_iter": 5}, tight=True)
