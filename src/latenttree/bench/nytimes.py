"""NY Times: 299,264 documents, the 3,000 most frequent words."""

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

TITLE = "NY Times: 299,264 documents, 3,000 words"
ABOUT = """The paper's NY Times experiment: presence of the 3,000 most frequent words in documents,
k = 2. To reach: 30 s and 4 GiB for the whole fit."""
FILE = "nytimes/counts.npz"
WORDS = ("game", "stock", "patient", "music", "court", "army")


def run(settings: Settings) -> dict[str, Any]:
    path = data_file(settings, FILE)
    rows = [] if path is None else measure_all(works(path, settings.quick), settings)
    return make_record("nytimes", TITLE, ABOUT, settings, rows)


def works(path: Any, quick: bool) -> list[Work]:
    vocabulary = path.with_name("vocab.txt")
    if quick:
        return [Work("top 30 words", Corpus(path, vocabulary, 30, WORDS[:2], 3_000), 2)]
    target = Target(30.0, memory=4 * 2**30)
    return [Work("3,000 words", Corpus(path, vocabulary, words=WORDS), 2, Paper(107.8), target)]


def draw(record: Mapping[str, Any]) -> Figure:
    from latenttree.bench.figures import words_figure

    return words_figure(record)
