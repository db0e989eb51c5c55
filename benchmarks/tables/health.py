"""Health records: diagnoses of 71,517 patients with diabetes, the phecode hierarchy as truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.data.phecodes import FILES, FORMS, Form, correlations, read_phecodes
from benchmarks.figures.trees import trees_figure
from benchmarks.grids import Column, Grid, field, make_grid
from benchmarks.registry import Table
from benchmarks.rivals.correlations import agglomerative, information, linked
from benchmarks.rivals.hierarchies import from_groups
from benchmarks.rivals.scikit_bio import joined
from benchmarks.scores import GROUP_COLUMNS, group_scores, inner_errors
from benchmarks.settings import Choice, Settings, data_files
from benchmarks.stages import timed_fit
from benchmarks.trees import arrays_of
from latenttree.evaluation.baselines import chow_liu
from latenttree.tree import Tree

ABOUT = """The codes (ICD-9; zeros that were lost before the point are put back) are mapped to
phecodes; those with 100 patients or more are variables, all patients are samples. Two forms.
Binary: each of the 220 phecodes present or absent. Multi-hot: phecodes with the same number before
the point are one variable; the 21 families with two or more phecodes are multi-hot groups, the
other phecodes stay binary. Truth is the phecode hierarchy: categories ("circulatory system"),
numbers before the point, numbers with one digit after it. Scores: inner splits of the hierarchy
that a tree has (shared) and has not (missing), splits that only the tree has (false), their sum RF
(a tree without any inner edge has RF = the number of splits of the hierarchy); share of variables
whose nearest other one has the same category; adjusted Rand index to the categories of the best cut
(which knows them, the same search for all methods), of the best into no more pieces than there are
categories ("best of few"), and of the plain cut. Rivals see correlations of the same 0/1 variables
(of a family: any of its codes); "ours, any code" sees those too. EM and the search after it take
minutes over 71,517 patients: at most 60 steps here (the default of LatentTree is 200, which still
gains a little), none with `--set moments_only=yes`."""
MIN_PATIENTS = 100
QUICK_PATIENTS, QUICK_MIN = 20_000, 200
N_LEGIBLE, SIZES = 12, (3, 9)
MOMENTS: dict[str, Any] = {"refine": None, "search": False}


def measure(settings: Settings) -> dict[str, Any]:
    """Both forms, all methods; the trees of ours and their tightest subtrees."""
    files = data_files(settings, *FILES)
    if not files:
        return {"rows": []}
    small = (QUICK_PATIENTS, QUICK_MIN) if settings.quick else (None, MIN_PATIENTS)
    events, info = read_phecodes(files, *small)
    for note in events.notes:
        settings.say(str(note))
    rows: list[dict[str, Any]] = []
    drawn, subtrees = {}, []
    for how, make in FORMS.items():
        if not settings.wants(how):
            continue
        form = make(events, info)
        rows += one_form(how, form, settings, drawn)
        tree = drawn[how].pop("learned")
        subtrees += [{"part": how, **found} for found in tightest(tree, form)]
    return {"rows": rows, "drawn": drawn, "subtrees": subtrees}


def variants(form: Form, settings: Settings) -> dict[str, dict[str, Any]]:
    """Ours by name, with what is changed."""
    chosen = {"ours, moments, any code": MOMENTS} if form.families else {}
    chosen |= {
        "ours, moments alone": MOMENTS,
        "ours, moments, fully resolved": {**MOMENTS, "min_support": 0.0},
    }
    steps = settings.choices["max_iter"]
    if settings.choices["moments_only"]:
        return chosen
    return chosen | {f"ours, {steps} steps of EM": {"max_iter": steps}}


def one_form(
    how: str, form: Form, settings: Settings, drawn: dict[str, Any]
) -> list[dict[str, Any]]:
    """Rows of all methods; the last tree of ours that is not fully resolved goes to `drawn`."""
    rows = []
    for method, options in variants(form, settings).items():
        seen = replace(form, X=form.sparse_binary, families={}) if "any code" in method else form
        names = {"family": seen.families} if seen.families else {"names": seen.names}
        model, seconds = timed_fit(seen.X, 2, **names, **options)
        rows.append(_row(how, method, model.tree_, form, seconds)
                    | {"stages": model.diagnostics_.stage_seconds,
                       "newick": model.tree_.to_newick()})  # fmt: skip
        settings.say(f"{how}, {method}: {seconds:.1f} s")
        if "min_support" not in options:
            drawn[how] = {"tree": arrays_of(model.tree_), "support": model.diagnostics_.support,
                          "groups": dict(zip(form.names, form.labels, strict=True)),
                          "learned": model.tree_}  # fmt: skip
    return rows + [_row(how, method, tree, form) for method, tree in rivals(form).items()]


def _row(
    how: str, method: str, tree: Tree, form: Form, seconds: float | None = None
) -> dict[str, Any]:
    errors = inner_errors(form.truth, tree)
    return {
        "label": f"{how}: {method}",
        "part": how,
        "method": method,
        "seconds": seconds,
        **errors._asdict(),
        "rf": errors.missing + errors.false,
        **group_scores(tree, form.labels, len(set(form.labels))),
    }


def rivals(form: Form) -> dict[str, Tree]:
    """What others make of the correlations."""
    correlation, names = correlations(form.sparse_binary), form.names
    distance = information(correlation)
    positive = information(correlation, signed=True)
    return {
        "agglomerative, 1 - correlation": agglomerative(correlation, names, signed=True),
        "agglomerative, 1 - |correlation|": agglomerative(correlation, names),
        "agglomerative, -log |correlation|": linked(distance, names),
        "agglomerative, Ward": agglomerative(correlation, names, True, "ward"),
        "neighbour joining": joined(distance, names),
        "neighbour joining, positive only": joined(positive, names),
        "Chow-Liu": chow_liu(distance, names),
        "Chow-Liu, positive only": chow_liu(positive, names),
        "no inner edge": from_groups(names, []),
    }


def tightest(tree: Tree, form: Form) -> list[dict[str, Any]]:
    """The tightest subtrees of a few variables, none within another.

    Tight: a short mean path between the members. The truth plays no part in the choice."""
    p, paths = tree.n_observed, tree.path_lengths()
    sides = np.unpackbits(tree.splits(), axis=1, count=p).astype(bool)
    sides = np.vstack([sides, ~sides])
    sizes = sides.sum(axis=1)
    candidates = sides[(sizes >= SIZES[0]) & (sizes <= SIZES[1])]
    width = [paths[np.ix_(s, s)].sum() / (s.sum() * (s.sum() - 1)) for s in candidates]
    group_of = dict(zip(form.names, form.labels, strict=True))
    chosen: list[dict[str, Any]] = []
    taken = np.zeros(p, dtype=bool)
    for i in np.argsort(width, kind="stable").tolist():
        if len(chosen) == N_LEGIBLE or (candidates[i] & taken).any():
            continue
        taken |= candidates[i]
        members = [tree.names[v] for v in np.flatnonzero(candidates[i]).tolist()]
        categories = sorted({group_of[name] for name in members})
        chosen.append({"path": float(width[i]), "members": members, "categories": categories})
    return chosen


COLUMNS = (
    Column("form", field("part")),
    Column("method", field("method")),
    *(Column(name, field(name)) for name in ("shared", "missing", "false")),
    Column("RF", field("rf")),
    *GROUP_COLUMNS,
)
SUBTREE_COLUMNS = (
    Column("form", field("part")),
    Column("mean path", field("path", ".2f")),
    Column("members", lambda row: "\n".join(row["members"])),
    Column("categories", lambda row: "\n".join(row["categories"])),
)


def body(record: Mapping[str, Any]) -> list[Grid | str]:
    """Scores of all methods, and the tightest subtrees of ours."""
    title = "The tightest subtrees of ours"
    return [
        make_grid(record["rows"], COLUMNS),
        make_grid(record["subtrees"], SUBTREE_COLUMNS, title),
    ]


TABLES = (
    Table(
        name="health",
        shows="220 phecodes of 71,517 patients, binary and multi-hot: hierarchy and categories",
        duration="20 min",
        title="Health records: phecodes and their hierarchy",
        about=ABOUT,
        measure=measure,
        body=body,
        draw=trees_figure,
        choices={
            "max_iter": Choice(60, "steps of EM", quick=10),
            "moments_only": Choice(False, "no EM and no search: faster"),
        },
    ),
)
