"""100,000 words, 300,000 documents: more variables than a matrix of them fits in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.data.rare_sources import RareCodes
from benchmarks.fits import fits_table
from benchmarks.settings import Settings
from benchmarks.sources import Target, Work

ABOUT = """Sparse binary data at the density of the NY Times' whole vocabulary (232 different words
a document), simulated from a known tree with frequencies by Zipf's law. A matrix of all pairs
would take 40 GB in float32. To finish in 24 GiB on 2 cores; "RF, frequent" is over the words in at
least 1% of the documents. The paper did not attempt the whole vocabulary."""
LIMIT = "8GiB"
WORDS_OF_A_DOCUMENT = 232.0


def works(settings: Settings) -> list[Work]:
    """The rows."""
    if settings.quick:
        return [_row(60, 3_000, 8.0, 10.0, {})]
    return [_row(100_000, 300_000, WORDS_OF_A_DOCUMENT, 100.0, {"memory_limit": LIMIT})]


def _row(p: int, n: int, per_sample: float, shift: float, options: Mapping[str, Any]) -> Work:
    source = RareCodes(p, n, per_sample, shift, frequent=0.01, with_oracle=False)
    target = Target(memory=24 * 2**30)
    return Work(f"{p:,} words, {n:,} documents", source, 2, target=target, options=options)


TABLES = (
    fits_table(
        works,
        name="words100k",
        shows="100,000 words of 300,000 documents under a limit of memory",
        duration="30 min",
        title="100,000 words, 300,000 documents, memory_limit = 8 GiB",
        about=ABOUT,
    ),
)
