"""Documents that were held out: ours against Chow-Liu, CLRG-EM and independent words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from benchmarks.contest import Contest, Limit, run_contests
from benchmarks.data.corpora import CORPORA, Documents
from benchmarks.figures.contests import heldout_figure
from benchmarks.grids import Column, Grid, make_grid, mebibytes, number
from benchmarks.registry import Table
from benchmarks.settings import Choice, Settings, data_file
from benchmarks.tables.rivals import note, time_or_why

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
N_WORDS = {"news20": (100,), "nips": (100, 1_000, 5_000), "nytimes": (100, 3_000)}
"""Numbers of words, by corpus."""


def measure(settings: Settings) -> dict[str, Any]:
    """All contests on the corpora that are here."""
    limit = replace(LIMIT, seconds=settings.choices["limit"])
    rows = run_contests(contests(settings), settings, limit)
    return {"rows": rows, "limit": limit.seconds}


def contests(settings: Settings) -> list[Contest]:
    """Of the corpora that are there."""
    found = []
    for part, sizes in N_WORDS.items():
        path = data_file(settings, CORPORA[part].file)
        if path is None:
            continue
        for top in (12,) if settings.quick else sizes:
            data = Documents(path, top, 2_000 if settings.quick else None)
            label = f"{CORPORA[part].title}, {top:,} words"
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


def body(record: Mapping[str, Any]) -> list[Grid | str]:
    """Likelihoods and BIC, time and memory of all."""
    return [make_grid(with_differences(record), COLUMNS)]


TABLES = (
    Table(
        name="heldout",
        shows="likelihood of held-out documents, beside Chow-Liu, CLRG-EM and independent words",
        duration="2 h",
        title="Held-out documents: gain over independent words",
        about=ABOUT,
        measure=measure,
        body=body,
        draw=heldout_figure,
        choices={"limit": Choice(1800.0, "seconds for each fit", quick=5.0)},
    ),
)
