"""DNA: trees of 27 to 36 taxa from ribosomal alignments, published posterior trees as truth.

Data sets DS1 to DS3 have a posterior sample of trees of a Bayesian analysis; its most probable tree
is the truth here. Ours takes taxa as variables with four states (k = d = 4), sites as samples, gaps
as missing: a general Markov model without a common rate matrix or a molecular clock. The rival is
scikit-bio's neighbour joining on LogDet distances, over the sites where both taxa are known.

Scores: inner splits of the most probable tree that are missing and inner splits that it does not
have; their sum, the Robinson-Foulds distance; its mean over the posterior; the largest
log-likelihood of our model on each tree (EM from the same start) and its BIC. DS4 has no posterior
here: how far the methods agree, and the likelihoods.
"""

from __future__ import annotations

import gzip
import re
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import latenttree as lt
from benchmarks.clusters import inner_errors
from benchmarks.common import DATA, console, data_file, options, save, table
from benchmarks.rivals.scikit_bio import joined
from latenttree.data import Table, read_fasta
from latenttree.engine import resolve_jobs
from latenttree.model.likelihood import total_log_likelihood
from latenttree.model.samples import Samples, marginals
from latenttree.parameters.moment_start import copying_model
from latenttree.refinement.em import refine

SETS = ("DS1", "DS2", "DS3", "DS4")
POSTERIOR = "phylo/{}.raw_data_DS1-8.rep1.trprobs.gz"
START_LENGTH = 0.1
MASS = 0.95
"""Share of the posterior whose trees the mean distance is over."""

Floats = NDArray[np.float64]


class Weighted(NamedTuple):
    probability: float
    tree: lt.Tree


def read_posterior(path: Path) -> list[Weighted]:
    """Trees of a NEXUS file sorted by their posterior probability, the most probable first."""
    with gzip.open(path, "rt") as file:
        text = file.read()
    block = re.search(r"translate(.*?);", text, re.DOTALL | re.IGNORECASE)
    if block is None:
        raise ValueError(f"{path} has no block 'translate'")
    names = dict(entry.split() for entry in block.group(1).split(","))
    found, mass = [], 0.0
    for weight, newick in re.findall(r"\[&W ([\d.eE+-]+)\]\s*(\S+;)", text):
        if mass > MASS:
            break
        mass += float(weight)
        found.append(Weighted(float(weight), _tree(newick, names)))
    return found


def _tree(newick: str, names: dict[str, str]) -> lt.Tree:
    named = re.sub(r"\d+", lambda number: names[number.group()], newick)
    tree = lt.Tree.from_newick(named)
    return tree.with_lengths(np.full(tree.n_edges, START_LENGTH))


def log_det(alignment: Table, damping: float = 0.5) -> Floats:
    """LogDet distances `-log det F_ab / sqrt(prod f_a prod f_b)` over sites where both are known,
    with half a site added to every pair of letters."""
    codes = np.asarray(alignment.codes, dtype=np.int64)
    p, d = codes.shape[1], int(alignment.dims[0])
    found = np.zeros((p, p))
    for a in range(p):
        for b in range(a):
            known = (codes[:, a] >= 0) & (codes[:, b] >= 0)
            cells = codes[known, a] * d + codes[known, b]
            shares = np.bincount(cells, minlength=d * d).reshape(d, d) + damping
            shares /= shares.sum()
            own = np.log(shares.sum(axis=0)).sum() + np.log(shares.sum(axis=1)).sum()
            found[a, b] = found[b, a] = max(own / 2 - np.linalg.slogdet(shares)[1], 0.0)
    return found


def methods(alignment: Table) -> dict[str, tuple[lt.Tree, float]]:
    """Trees and seconds."""
    found: dict[str, tuple[lt.Tree, float]] = {}
    variants: dict[str, dict[str, Any]] = {"ours": {}, "ours, fully resolved": {"min_support": 0.0}}
    for name, changes in variants.items():
        start = time.perf_counter()
        model = lt.LatentTree(n_states=4, random_state=0, **changes).fit(alignment)
        found[name] = model.tree_, time.perf_counter() - start
    start = time.perf_counter()
    rival = joined(log_det(alignment), alignment.names)
    found["neighbour joining, LogDet"] = rival, time.perf_counter() - start
    return found


def best_fit(tree: lt.Tree, alignment: Table) -> dict[str, float]:
    """The largest log-likelihood of the model with four states on a given tree, and its BIC."""
    samples, jobs = Samples(alignment), resolve_jobs(None)
    tree = tree.with_lengths(np.clip(tree.lengths, 0.01, 5.0)).reorder(alignment.names)
    start = copying_model(tree, marginals(alignment))
    model = refine(start, samples, max_steps=300, n_jobs=jobs).model
    value = total_log_likelihood(model, samples, jobs)
    bic = value - model.n_parameters / 2 * np.log(samples.n_samples)
    return {"log_likelihood": value, "bic": bic}


def scores(tree: lt.Tree, posterior: list[Weighted]) -> dict[str, Any]:
    if not posterior:
        return {}
    errors = inner_errors(posterior[0].tree, tree)
    weights = np.array([known.probability for known in posterior])
    distances = [sum(inner_errors(known.tree, tree)[1:]) for known in posterior]
    return {
        "missing": errors.missing,
        "false": errors.false,
        "rf": errors.missing + errors.false,
        "mean_rf": float(weights @ distances / weights.sum()),
    }


def run(name: str, fasta: Path) -> dict[str, Any]:
    alignment = read_fasta(fasta)
    path = DATA / POSTERIOR.format(name)
    posterior = read_posterior(path) if path.is_file() else []
    trees = methods(alignment)
    if posterior:
        trees["most probable of the posterior"] = posterior[0].tree, 0.0
    rows = {
        method: {
            "inner": len(tree.internal_edges()),
            "seconds": seconds,
            "newick": tree.to_newick(),
            **scores(tree, posterior),
            **best_fit(tree, alignment),
        }
        for method, (tree, seconds) in trees.items()
    }
    ours, resolved, rival = (tree for tree, _ in list(trees.values())[:3])
    agreement = {
        "ours": inner_errors(rival, ours)._asdict(),
        "ours, fully resolved": inner_errors(rival, resolved)._asdict(),
    }
    return {
        "taxa": alignment.n_vars,
        "sites": alignment.n_samples,
        "gaps": float((np.asarray(alignment.codes) < 0).mean()),
        "probability": posterior[0].probability if posterior else None,
        "methods": rows,
        "agreement": agreement,
    }


def show(name: str, found: dict[str, Any]) -> None:
    top = found["probability"]
    known = "no posterior" if top is None else f"most probable tree has {top:.2f}"
    size = f"{found['taxa']} taxa, {found['sites']:,} sites, {found['gaps']:.1%} gaps"
    made = table(
        f"{name}: {size}; {known}",
        "method|inner splits|missing|false|RF|mean RF|log-likelihood|BIC|s",
    )
    for method, row in found["methods"].items():
        judged = ["missing", "false", "rf"] if "rf" in row else []
        made.add_row(
            method,
            str(row["inner"]),
            *([str(row[score]) for score in judged] or [""] * 3),
            f"{row['mean_rf']:.2f}" if judged else "",
            f"{row['log_likelihood']:.1f}",
            f"{row['bic']:.1f}",
            f"{row['seconds']:.1f}" if row["seconds"] else "",
        )
    console.print(made)
    for method, errors in found["agreement"].items():
        console.print(
            f"{method} and neighbour joining share {errors['shared']} inner splits; "
            f"{errors['missing']} only in neighbour joining, {errors['false']} only in ours"
        )


def main() -> None:
    parser = options(__doc__, seeds=1)
    parser.add_argument("--sets", nargs="+", default=None, choices=SETS, help="default: all")
    args = parser.parse_args()
    results = {}
    for name in args.sets or (SETS[:1] if args.quick else SETS):
        fasta = data_file(f"phylo/{name}.fasta")
        if fasta is None:
            continue
        results[name] = run(name, fasta)
        show(name, results[name])
    if results:
        save("dna", args, results)


if __name__ == "__main__":
    main()
