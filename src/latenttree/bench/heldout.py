"""Documents that were held out: ours against Chow-Liu, CLRG-EM and independent words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from latenttree.bench.columns import Column, Grid, grid_in_parts, mebibytes, number
from latenttree.bench.contest import Contest, Limit, run_contests
from latenttree.bench.contest_data import Documents
from latenttree.bench.record import make_record
from latenttree.bench.rivals_table import limit_of, note, time_or_why
from latenttree.bench.settings import Settings, data_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console

TITLE = "Held-out documents: gain over independent words"
ABOUT = """Presence of words in documents; a tenth of the documents, at random, is held out. Words
are the most frequent ones of the documents to learn from, k = 2. Held out: mean log-likelihood of a
document in nats; gain: over independent words, with its standard error over documents. BIC: of the
documents that were learned from, -2 log L + parameters x log n, as the difference to independent
words for each document; lower is better. Chow-Liu: the tree of largest mutual information, tables
by counting with the same pseudo-samples as ours. CLRG-EM: the tree of CLRG, EM from up to 20 random
starts, as many as there is time for, the best by likelihood. Each in a process of its own with a
limit of time; who ran out is not tried on more words of the same documents."""
METHODS = ("latenttree", "CLRG-EM", "Chow-Liu", "independent")
LIMIT = Limit(1800.0, 16 * 2**30, grace=600.0)
QUICK_LIMIT = Limit(5.0, 4 * 2**30)
CORPORA = (
    ("news20", "20 Newsgroups", "news20/20news_w100.mat", None, (100,)),
    ("nips", "NIPS", "nips/docword.nips.txt.gz", None, (100, 1_000, 5_000)),
    ("nytimes", "NY Times", "nytimes/counts.npz", "vocab.txt", (100, 3_000)),
)
"""Part, name, file, vocabulary beside it, numbers of words."""


def run(settings: Settings) -> dict[str, Any]:
    limit = limit_of(settings, QUICK_LIMIT if settings.quick else LIMIT)
    rows = run_contests(contests(settings), settings, limit)
    return make_record("heldout", TITLE, ABOUT, settings, rows, limit=limit.seconds)


def contests(settings: Settings) -> list[Contest]:
    """Of the corpora that are there."""
    found = []
    for part, name, file, vocabulary, sizes in CORPORA:
        path = data_file(settings, file)
        if path is None:
            continue
        words = None if vocabulary is None else path.with_name(vocabulary)
        for top in (12,) if settings.quick else sizes:
            data = Documents(path, words, top, 2_000 if settings.quick else None)
            label = f"{name}, {top:,} words"
            found.append(Contest(label, data, 2, METHODS, part, reference="independent"))
    return found


# ---- shown ---------------------------------------------------------------------------------------


def with_differences(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows with the difference of their BIC to that of independent words, for each document."""
    alone = {
        row["work"]: row["bic"] for row in record["rows"] if row["rival"] == row["reference_name"]
    }
    found = []
    for row in record["rows"]:
        base = alone.get(row["work"])
        known = base is not None and row["bic"] is not None
        found.append({**row, "bic_gain": (row["bic"] - base) / row["n_samples"] if known else None})
    return found


def _gain(row: Mapping[str, Any]) -> str | None:
    if row.get("gain") is None or row["rival"] == row["reference_name"]:
        return None
    return f"{row['gain']:+.3f} ± {row['gain_error']:.3f}"


def _documents(row: Mapping[str, Any]) -> str | None:
    return None if row["n_samples"] is None else f"{row['n_samples']:,} / {row['n_held_out']:,}"


COLUMNS = (
    Column("documents, words", lambda row: row["work"]),
    Column("learned from / held out", _documents),
    Column("method", lambda row: row["rival"]),
    Column("held out", lambda row: number(row["held_out"], 3)),
    Column("gain", _gain),
    Column("BIC - independent's", lambda row: number(row["bic_gain"], 3)),
    Column("parameters", lambda row: number(row["n_parameters"], 0)),
    Column("s", time_or_why),
    Column("peak memory", lambda row: mebibytes(row["peak_bytes"])),
    Column("note", note),
)


def grid(record: Mapping[str, Any]) -> Grid:
    return grid_in_parts(with_differences(record), COLUMNS)


def show(record: Mapping[str, Any], console: Console) -> None:
    from latenttree.bench.show import show_grid

    show_grid(record["title"], grid(record), console)


def draw(record: Mapping[str, Any]) -> Figure:
    from latenttree.bench.contest_figures import heldout_figure

    return heldout_figure(record)
