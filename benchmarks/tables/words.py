"""Bags of words: NIPS, NY Times, 20 Newsgroups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from benchmarks.data.corpora import CORPORA, Corpus
from benchmarks.figures.fits import words_figure
from benchmarks.fits import body_of_fits, fits_table
from benchmarks.grids import Column, Grid, largest, make_grid
from benchmarks.registry import Table
from benchmarks.settings import Settings, data_file
from benchmarks.sources import Paper, Target, Work

ABOUT_NIPS = """The paper's NIPS experiment: presence of words in documents, k = 2, the whole
vocabulary (words in at least two documents) and the 5,000 most frequent words. Whole fit:
structure, parameters, refinement. Neighbourhoods of words, as the paper draws them, are of the
5,000."""
ABOUT_NYTIMES = """The paper's NY Times experiment: presence of the 3,000 most frequent words in
documents, k = 2. To reach: 30 s and 4 GiB for the whole fit."""
ABOUT_NEWS20 = """Presence of 100 words in the postings of 20 Newsgroups, k = 2."""
ABOUT_NEAREST = """ The first fit of the process loads the kernels from the cache. Nearest words are
by path length; paths do not cross edges of support 0, which join parts that show no dependence."""

WORDS = {
    "nips": ("training", "algorithm", "eigenvalues", "spike", "speech", "retina"),
    "nytimes": ("game", "stock", "patient", "music", "court", "army"),
    "news20": ("space", "windows", "god"),
}
"""Words whose neighbourhoods are shown."""


def corpus(name: str, settings: Settings) -> Corpus | None:
    """A corpus, small if the run is quick; None where its file is not here."""
    path = data_file(settings, CORPORA[name].file)
    if path is None:
        return None
    if settings.quick:
        return Corpus(name, path, top=60, words=WORDS[name][:2], documents=3_000)
    return Corpus(name, path, words=WORDS[name])


def nips(settings: Settings) -> list[Work]:
    """The 5,000 most frequent words, and all."""
    found = corpus("nips", settings)
    if found is None:
        return []
    if settings.quick:
        return [Work("top 60 words", found, 2)]
    return [
        Work("top 5,000 words", replace(found, top=5_000), 2, Paper(1164.4), Target(5.0)),
        Work("all words", found, 2, Paper(15332.4), Target(20.0)),
    ]


def nytimes(settings: Settings) -> list[Work]:
    """The 3,000 words that there are."""
    found = corpus("nytimes", settings)
    target = Target(30.0, memory=4 * 2**30)
    return [] if found is None else [Work("3,000 words", found, 2, Paper(107.8), target)]


def news20(settings: Settings) -> list[Work]:
    """The 100 words that there are."""
    found = corpus("news20", settings)
    return [] if found is None else [Work("100 words", found, 2)]


def body(record: Mapping[str, Any]) -> list[Grid | str]:
    """Whole fits; reading and the first fit; words near some words."""
    loading = (
        Column("work", lambda row: row["label"]),
        Column("reading the file, s", largest("seconds_loading", 2)),
        Column("first fit, s", largest("seconds_first", 2)),
        Column("peak before the fit, bytes", largest("peak_bytes_loaded", 0)),
    )
    return [*body_of_fits(record), make_grid(record["rows"], loading), nearest_grid(record)]


def nearest_grid(record: Mapping[str, Any]) -> Grid:
    """The nearest words along the tree of each row."""
    cells = [
        [row["label"], word, ", ".join(f"{name} {length:.2f}" for name, length in near)]
        for row in record["rows"]
        for run in row["runs"][:1]
        for word, near in run["described"]["nearest"].items()
    ]
    return Grid(["work", "word", "nearest, with path lengths"], cells)


def words_table(**head: Any) -> Table:
    """A table of whole fits of a corpus."""
    made = fits_table(draw=words_figure, **head)
    return replace(made, about=made.about + ABOUT_NEAREST, body=body)


TABLES = (
    words_table(
        works=nips,
        name="nips",
        shows="the paper's NIPS experiment: 1,500 documents, 12,419 words, neighbourhoods of words",
        duration="2 min",
        title="NIPS: 1,500 documents, 12,419 words",
        about=ABOUT_NIPS,
    ),
    words_table(
        works=nytimes,
        name="nytimes",
        shows="the paper's NY Times experiment: 299,264 documents, 3,000 words",
        duration="2 min",
        title="NY Times: 299,264 documents, 3,000 words",
        about=ABOUT_NYTIMES,
    ),
    words_table(
        works=news20,
        name="news20",
        shows="20 Newsgroups: 16,242 postings, 100 words",
        duration="1 min",
        title="20 Newsgroups: 16,242 postings, 100 words",
        about=ABOUT_NEWS20,
    ),
)
