"""Rivals beside us on trees that are known: structure, held-out likelihood, time, memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from benchmarks.contest import DONE, Contest, Limit, run_contests
from benchmarks.data.halves import Simulated
from benchmarks.data.rare_sources import RareCodes
from benchmarks.data.simulated import Balanced
from benchmarks.figures.contests import rivals_figure
from benchmarks.grids import Column, mebibytes, number, seconds
from benchmarks.registry import Table
from benchmarks.rivals import versions
from benchmarks.settings import Choice, Settings

ABOUT = """Simulated trees of known structure, the same samples for all, each method in a process of
its own with a limit of time. Balanced 3-ary trees with edges of information length 0.5 (binary: k =
2; 10 categories: k = 3), 10,000 samples to learn from and 2,000 held out; words with frequencies by
Zipf's law, 20,000 and 4,000. Times are of the fit alone, libraries loaded and kernels compiled.
Methods that work on distances all get our information distances, whose time is in theirs. RF:
normalised Robinson-Foulds distance to the true tree, of clusterers that of the tree of their
merges, layers or topics; "RF, best cut": with edges below a threshold contracted, the best one
knowing the truth, for methods that always make binary trees. Families: adjusted Rand index of the
variables around one hidden node, of clusterers of their groups, of others of the tree at that best
threshold. Held out: mean log-likelihood of a sample, in nats; loss: below that of the true model.
Methods without a probabilistic model of the samples have none; that of hLDA is of running words and
cannot be compared. CorEx is run on binary variables alone, hLDA on words alone. Likelihoods of
pgmpy's models are computed by our inference. "Is given" is what a method knows of the truth
because it cannot do without."""
ORDER = (
    "latenttree", "CLRG-EM", "CLRG", "CLNJ", "recursive grouping", "neighbour joining",
    "scikit-bio NJ", "scikit-learn agglomerative", "linear CorEx", "CorEx topic", "tomotopy hLDA",
    "pgmpy EM", "pgmpy Chow-Liu", "Chow-Liu", "independent",
)  # fmt: skip
SEEDS = 3
LIMIT = Limit(300.0, 12 * 2**30)


def measure(settings: Settings) -> dict[str, Any]:
    """All contests."""
    limit = replace(LIMIT, seconds=settings.choices["limit"])
    rows = run_contests(contests(settings.quick), settings, limit, SEEDS)
    return {"rows": rows, "limit": limit.seconds, "libraries": versions()}


def contests(quick: bool) -> list[Contest]:
    """Sets of data, and who tries them."""
    if quick:
        return [_balanced(9, 2, 2, 1_500, 500), _words(30, 2_000, 500, 5.0)]
    return [
        _balanced(9, 2, 2),
        _balanced(81, 2, 2),
        _balanced(9, 10, 3),
        _balanced(27, 10, 3),
        _balanced(81, 10, 3),
        _words(300, 20_000, 4_000, 20.0),
    ]


def _balanced(p: int, d: int, k: int, n: int = 10_000, n_test: int = 2_000) -> Contest:
    what = "binary" if d == 2 else f"{d} categories"
    data = Simulated(Balanced(p, d, n + n_test, k), n_test)
    return Contest(f"{p} variables, {what}", data, k, ORDER, what)


def _words(p: int, n: int, n_test: int, per_sample: float) -> Contest:
    data = Simulated(RareCodes(p, n + n_test, per_sample, with_oracle=False), n_test)
    return Contest(f"{p} words, Zipf", data, 2, ORDER, "words")


# ---- shown ---------------------------------------------------------------------------------------


def time_or_why(row: Mapping[str, Any]) -> str | None:
    """Seconds, or why there are none."""
    if row["seconds"] is None:
        return str(row["failure"])
    return seconds(row["seconds"])


def note(row: Mapping[str, Any]) -> str | None:
    """What stopped a method early."""
    parts = [row["stopped"]] if row.get("stopped") else []
    if row["seconds"] is not None and row["state"] != DONE:
        parts.append(f"{row['n_seeds']} seed(s): {row['failure']}")
    return "; ".join(parts) or None


def _loss(row: Mapping[str, Any]) -> str | None:
    return None if row.get("gain") is None else f"{-row['gain']:.3f}"


COLUMNS = (
    Column("data", lambda row: row["work"]),
    Column("method", lambda row: row["rival"]),
    Column("is given", lambda row: row["given"] or None),
    Column("RF", lambda row: number(row["rf"], 3)),
    Column("RF, best cut", lambda row: number(row["rf_best"], 3)),
    Column("families", lambda row: number(row["rand"], 3)),
    Column("held out", lambda row: number(row["held_out"], 3)),
    Column("loss", _loss),
    Column("s", time_or_why),
    Column("peak memory", lambda row: mebibytes(row["peak_bytes"])),
    Column("note", note),
)


def draw(record: Mapping[str, Any]) -> Any:
    """Distances to the truth and times, methods in the order of the table."""
    return rivals_figure(record, ORDER)


TABLES = (
    Table(
        name="rivals",
        shows="other methods and libraries on trees that are known",
        duration="2 h",
        title="Rivals on known trees",
        about=ABOUT,
        measure=measure,
        columns=COLUMNS,
        draw=draw,
        choices={"limit": Choice(300.0, "seconds for each fit", quick=5.0)},
    ),
)
