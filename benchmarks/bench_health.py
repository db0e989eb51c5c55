"""Health records: diagnoses of 71,517 patients with diabetes, phecodes as variables.

The codes (ICD-9; zeros that were lost before the point are put back) are mapped to phecodes; those
with 100 patients or more are variables, all patients are samples. Two forms:

- binary: each of the 220 phecodes present or absent;
- multi-hot: phecodes with the same number before the point are one variable. The 21 families with
  two or more phecodes are multi-hot groups, the other phecodes stay binary.

Truth is the phecode hierarchy: categories ("circulatory system"), numbers before the point, numbers
with one digit after it. Scores: inner splits of the hierarchy that a tree has (shared) and has not
(missing), splits that only the tree has (false), their sum RF (a tree without any inner edge has
RF = the number of splits of the hierarchy); adjusted Rand index to the categories of the best cut
(which knows them, the same search for all methods), of the best into no more pieces than there are
categories ("best of few"), and of the plain cut; share of variables whose nearest other one has the
same category. Rivals see correlations of the same 0/1 variables (of a family: any of its codes);
"ours, any code" sees those too.

EM and the search after it take minutes over 71,517 patients: at most 60 steps here (the default of
`LatentTree` is `--max-iter 200`, which still gains a little), none with `--moments-only`.
"""

from __future__ import annotations

import textwrap
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

import latenttree as lt
from benchmarks.clusters import best_cut, diameter_cut, inner_errors, nearest_share
from benchmarks.common import DATA, console, data_file, options, save, table
from benchmarks.rivals.hierarchies import from_groups
from benchmarks.rivals.scikit_bio import joined
from benchmarks.rivals_trees import agglomerative, information, linked
from latenttree.data import Events, read_events
from latenttree.evaluation.baselines import chow_liu

MIN_PATIENTS = 100
QUICK_PATIENTS, QUICK_MIN = 20_000, 200
N_LEGIBLE, SIZES = 12, (3, 9)

FILES = (
    "diabetes130/patient_icd9.csv.xz",
    "phecode/phecode_map.csv",
    "phecode/pheinfo.csv",
)


@dataclass(frozen=True)
class Form:
    """Data for ours, the same as 0/1 columns `(n, p)` for rivals, and the truth."""

    X: Any
    families: dict[str, str]
    presence: sparse.csr_array
    names: tuple[str, ...]
    labels: list[str]
    truth: lt.Tree


def read(patients: int | None, min_patients: int) -> tuple[Events, pd.DataFrame]:
    """Patients and phecodes, and what the phecodes mean."""
    events = pd.read_csv(DATA / FILES[0], dtype=str)
    chosen = events["patient_nbr"].unique()[:patients]
    events["icd9"] = events["icd9"].map(padded)
    known = pd.read_csv(DATA / FILES[1], dtype=str)
    known = known.loc[known["vocabulary_id"] == "ICD9CM", ["code", "phecode"]]
    found = read_events(
        events,
        sample="patient_nbr",
        code="icd9",
        roll_up=known,
        min_support=min_patients,
        all_samples=chosen,
    )
    return found, pd.read_csv(DATA / FILES[2], dtype=str).set_index("phecode")


def padded(code: str) -> str:
    """Three characters before the point: "8" is 008."""
    whole, point, rest = code.partition(".")
    return whole.zfill(3) + point + rest


# ---- the two forms -------------------------------------------------------------------------


def binary(events: Events, info: pd.DataFrame) -> Form:
    names = tuple(called(code, info) for code in events.names)
    nested: dict[str, list[str]] = {}
    for code, name in zip(events.names, names, strict=True):
        whole, _, rest = code.partition(".")
        for group in {str(info.loc[code, "group"]), whole, f"{whole}.{rest[:1]}"}:
            nested.setdefault(group, []).append(name)
    return Form(
        events.matrix,
        {},
        events.matrix,
        names,
        [str(info.loc[code, "group"]) for code in events.names],
        from_groups(names, nested.values()),
    )


def multi_hot(events: Events, info: pd.DataFrame) -> Form:
    """Families by the number before the point; alone in its family a code is binary."""
    members: dict[str, list[int]] = {}
    for column, code in enumerate(events.names):
        members.setdefault(code.partition(".")[0], []).append(column)
    first = {family: events.names[columns[0]] for family, columns in members.items()}
    named = {
        called(family if family in info.index else first[family], info): columns
        for family, columns in members.items()
    }
    X = {
        name: events.matrix[:, columns]
        if len(columns) > 1
        else events.matrix[:, columns].toarray().ravel().astype(np.uint8)
        for name, columns in named.items()
    }
    labels = [str(info.loc[code, "group"]) for code in first.values()]
    nested: dict[str, list[str]] = {}
    for name, label in zip(named, labels, strict=True):
        nested.setdefault(label, []).append(name)
    families = {name: "multihot" for name, columns in named.items() if len(columns) > 1}
    names = tuple(named)
    return Form(
        X, families, _any(events, named), names, labels, from_groups(names, nested.values())
    )


def _any(events: Events, named: dict[str, list[int]]) -> sparse.csr_array:
    """Whether a patient has any code of a family, `(n, families)`."""
    rows = np.concatenate(list(named.values()))
    at = np.repeat(np.arange(len(named)), [len(columns) for columns in named.values()])
    chosen = sparse.csr_array((np.ones(len(rows)), (rows, at)), (len(rows), len(named)))
    return sparse.csr_array((events.matrix.astype(np.float64) @ chosen) > 0)


def called(code: str, info: pd.DataFrame) -> str:
    return f"{code} {textwrap.shorten(str(info.loc[code, 'description']), 44, placeholder=' ...')}"


# ---- methods ------------------------------------------------------------------------------


def rivals(form: Form) -> dict[str, lt.Tree]:
    correlation, names = correlations(form.presence), form.names
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


def correlations(presence: sparse.csr_array) -> NDArray[np.float64]:
    """Pearson correlations of 0/1 columns."""
    x = presence.astype(np.float64)
    n, share = x.shape[0], np.asarray(x.mean(axis=0)).ravel()
    covariance = (x.T @ x).toarray() / n - np.outer(share, share)
    deviation = np.sqrt(share * (1 - share))
    return np.asarray(covariance / np.outer(deviation, deviation))


def fit(form: Form, **changes: Any) -> tuple[lt.LatentTree, float]:
    chosen = {"family": form.families} if form.families else {"names": form.names}
    start = time.perf_counter()
    model = lt.LatentTree(n_states=2, random_state=0, **chosen, **changes).fit(form.X)
    return model, time.perf_counter() - start


def scores(tree: lt.Tree, form: Form) -> dict[str, Any]:
    errors = inner_errors(form.truth, tree)
    best = best_cut(tree, form.labels)
    return {
        **errors._asdict(),
        "rf": errors.missing + errors.false,
        "best_cut": best.score,
        "best_clusters": best.n_clusters,
        "few_cut": best_cut(tree, form.labels, len(set(form.labels))).score,
        "plain_cut": diameter_cut(tree, len(set(form.labels)), form.labels).score,
        "nearest": nearest_share(tree, form.labels),
        "n_hidden": tree.n_hidden,
    }


def run(how: str, form: Form, args: Any) -> dict[str, Any]:
    variants: dict[str, dict[str, Any]] = {
        "ours, moments alone": {"refine": None, "search": False},
        "ours, moments, fully resolved": {"refine": None, "search": False, "min_support": 0.0},
    }
    plain = {"ours, moments, any code": {"refine": None, "search": False}} if form.families else {}
    if not args.moments_only:
        variants[f"ours, {args.max_iter} steps of EM"] = {"max_iter": args.max_iter}
    found: dict[str, Any] = {}
    for method, changes in {**plain, **variants}.items():
        seen = replace(form, X=form.presence, families={}) if method in plain else form
        model, seconds = fit(seen, **changes)
        found[method] = scores(model.tree_, form) | {
            "seconds": seconds,
            "stages": model.diagnostics_.stage_seconds,
            "newick": model.tree_.to_newick(),
        }
        if "min_support" not in changes:
            drawn = model
    for method, tree in rivals(form).items():
        found[method] = scores(tree, form)
    draw(drawn, form, args.out / f"health_{how}{'_quick' if args.quick else ''}.png")
    subtrees = legible(drawn.tree_, form)
    show(how, found, form)
    show_subtrees(how, subtrees)
    return {"methods": found, "subtrees": subtrees}


# ---- what is seen -------------------------------------------------------------------------


def draw(model: lt.LatentTree, form: Form, path: Path) -> None:
    """The tree, large enough to read the names, which have the colours of their categories."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.patches import Patch

    maps = (("tab10", 10), ("Dark2", 8))
    palette = [matplotlib.colormaps[name](i) for name, size in maps for i in range(size)]
    colours = dict(zip(dict.fromkeys(form.labels), palette, strict=False))
    label_of = {name.split()[0]: label for name, label in zip(form.names, form.labels, strict=True)}
    axes = model.plot()
    axes.figure.set_size_inches(28, 28)
    for text in axes.texts:  # names are cut short, but not before the code
        text.set_color(colours[label_of[text.get_text().split()[0]]])
        text.set_fontsize(11)
    patches = [Patch(color=colour, label=label) for label, colour in colours.items()]
    axes.figure.legend(handles=patches, loc="lower left", fontsize=16)
    path.parent.mkdir(parents=True, exist_ok=True)
    axes.figure.savefig(path, dpi=90)
    console.print(f"picture: {path}")


def legible(tree: lt.Tree, form: Form) -> list[dict[str, Any]]:
    """The tightest subtrees of a few variables, none within another.

    Tight: a short mean path between the members. The truth plays no part in the choice."""
    p, paths = tree.n_observed, tree.path_lengths()
    sides = np.unpackbits(tree.splits(), axis=1, count=p).astype(bool)
    sides = np.vstack([sides, ~sides])
    sizes = sides.sum(axis=1)
    candidates = sides[(sizes >= SIZES[0]) & (sizes <= SIZES[1])]
    width = [paths[np.ix_(s, s)].sum() / (s.sum() * (s.sum() - 1)) for s in candidates]
    chosen: list[dict[str, Any]] = []
    taken = np.zeros(p, dtype=bool)
    for i in np.argsort(width, kind="stable").tolist():
        if len(chosen) == N_LEGIBLE or (candidates[i] & taken).any():
            continue
        taken |= candidates[i]
        members = np.flatnonzero(candidates[i]).tolist()
        chosen.append(
            {
                "path": float(width[i]),
                "members": [tree.names[v] for v in members],
                "categories": sorted(
                    {form.labels[form.names.index(tree.names[v])] for v in members}
                ),
            }
        )
    return chosen


def show(how: str, found: dict[str, Any], form: Form) -> None:
    n, p = form.presence.shape
    made = table(
        f"Health, {how}: {n:,} patients, {p} variables, {len(set(form.labels))} categories",
        "method|shared|missing|false|RF|ARI, best cut|clusters|best of few|plain cut|nearest|hidden"
        "|s",
    )
    for method, row in found.items():
        made.add_row(
            method,
            *(str(row[count]) for count in ("shared", "missing", "false", "rf")),
            f"{row['best_cut']:.3f}",
            str(row["best_clusters"]),
            f"{row['few_cut']:.3f}",
            f"{row['plain_cut']:.3f}",
            f"{row['nearest']:.3f}",
            str(row["n_hidden"]),
            f"{row['seconds']:.1f}" if "seconds" in row else "",
        )
    console.print(made)


def show_subtrees(how: str, subtrees: list[dict[str, Any]]) -> None:
    made = table(f"Health, {how}: the tightest subtrees", "mean path|members|categories")
    for subtree in subtrees:
        made.add_row(
            f"{subtree['path']:.2f}",
            "\n".join(subtree["members"]),
            "\n".join(subtree["categories"]),
            end_section=True,
        )
    console.print(made)


def main() -> None:
    parser = options(__doc__, seeds=1)
    parser.add_argument("--forms", nargs="+", choices=("binary", "multihot"), default=None)
    parser.add_argument("--max-iter", type=int, default=60, help="steps of EM (default 60)")
    parser.add_argument("--moments-only", action="store_true", help="no EM and no search: faster")
    args = parser.parse_args()
    if any(data_file(file) is None for file in FILES):
        return
    small = (QUICK_PATIENTS, QUICK_MIN) if args.quick else (None, MIN_PATIENTS)
    events, info = read(*small)
    for note in events.notes:
        console.print(note, style="dim")
    makers = {"binary": binary, "multihot": multi_hot}
    results = {how: run(how, makers[how](events, info), args) for how in args.forms or list(makers)}
    save("health", args, results)


if __name__ == "__main__":
    main()
