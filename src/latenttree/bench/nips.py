"""NIPS: 1,500 documents, the whole vocabulary and its 5,000 most frequent words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from latenttree.bench.corpora import Corpus
from latenttree.bench.measure import measure_all
from latenttree.bench.record import make_record
from latenttree.bench.settings import Settings, data_file
from latenttree.bench.works import Paper, Target, Work

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "NIPS: 1,500 documents, 12,419 words"
ABOUT = """The paper's NIPS experiment: presence of words in documents, k = 2, the whole vocabulary
(words in at least two documents) and the 5,000 most frequent words. Whole fit: structure,
parameters, refinement. Neighbourhoods of words, as the paper draws them, are of the 5,000."""
FILE = "nips/docword.nips.txt.gz"
WORDS = ("training", "algorithm", "eigenvalues", "spike", "speech", "retina")


def run(settings: Settings) -> dict[str, Any]:
    path = data_file(settings, FILE)
    rows = [] if path is None else measure_all(works(path, settings.quick), settings)
    return make_record("nips", TITLE, ABOUT, settings, rows)


def works(path: Any, quick: bool) -> list[Work]:
    if quick:
        return [Work("top 60 words", Corpus(path, top=60, words=WORDS[:2]), 2)]
    return [
        Work(
            "top 5,000 words", Corpus(path, top=5_000, words=WORDS), 2, Paper(1164.4), Target(5.0)
        ),
        Work("all words", Corpus(path, words=WORDS), 2, Paper(15332.4), Target(20.0)),
    ]


def draw(record: Mapping[str, Any]) -> Figure:
    from latenttree.bench.figures import words_figure

    return words_figure(record)
