"""DNA: trees of 27 to 36 taxa from ribosomal alignments, published posterior trees as truth."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data.alignments import POSTERIOR, SETS, WeightedTree, log_det, read_posterior
from benchmarks.grids import Column, Grid, field, make_grid
from benchmarks.registry import Table
from benchmarks.rivals.scikit_bio import joined
from benchmarks.scores import inner_errors
from benchmarks.settings import Settings, data_file
from benchmarks.stages import timed_fit
from benchmarks.timing import timed
from latenttree.data import Table as DataTable
from latenttree.data import read_fasta
from latenttree.engine import resolve_jobs
from latenttree.model.likelihood import total_log_likelihood
from latenttree.model.samples import Samples, marginals
from latenttree.parameters.moment_start import copying_model
from latenttree.refinement.tree_em import run_em
from latenttree.tree import Tree

ABOUT = """Data sets DS1 to DS3 have a posterior sample of trees of a Bayesian analysis; its most
probable tree is the truth here. Ours takes taxa as variables with four states (k = d = 4), sites as
samples, gaps as missing: a general Markov model without a common rate matrix or a molecular clock.
The rival is scikit-bio's neighbour joining on LogDet distances, over the sites where both taxa are
known. Scores: inner splits of the most probable tree that are missing and inner splits that it does
not have; their sum, the Robinson-Foulds distance; its mean over the posterior; the largest
log-likelihood of our model on each tree (EM from the same start) and its BIC. DS4 has no posterior
here: how far the methods agree, and the likelihoods."""
OURS: dict[str, dict[str, Any]] = {"ours": {}, "ours, fully resolved": {"min_support": 0.0}}
RIVAL = "neighbour joining, LogDet"


def measure(settings: Settings) -> dict[str, Any]:
    """All data sets that are here."""
    rows: list[dict[str, Any]] = []
    sets = {}
    for name in SETS[:1] if settings.quick else SETS:
        fasta = data_file(settings, f"phylo/{name}.fasta") if settings.wants(name) else None
        if fasta is not None:
            found, sets[name] = one_set(name, fasta)
            rows += found
            settings.say(f"{name}: done")
    return {"rows": rows, "sets": sets}


def one_set(name: str, fasta: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Rows of all methods; what the data set is, and how far ours and the rival agree."""
    alignment = read_fasta(fasta)
    path = fasta.parents[1] / POSTERIOR.format(name)
    posterior = read_posterior(path) if path.is_file() else []
    trees = learned_trees(alignment)
    agreement = {m: inner_errors(trees[RIVAL][0], trees[m][0])._asdict() for m in OURS}
    if posterior:
        trees["most probable of the posterior"] = posterior[0].tree, None
    rows = [
        {
            "label": f"{name}: {method}",
            "set": name,
            "method": method,
            "seconds": seconds,
            "inner": len(tree.internal_edges()),
            "newick": tree.to_newick(),
            **scores(tree, posterior),
            **best_fit(tree, alignment),
        }
        for method, (tree, seconds) in trees.items()
    ]
    return rows, {
        "taxa": alignment.n_vars,
        "sites": alignment.n_samples,
        "gaps": float((np.asarray(alignment.codes) < 0).mean()),
        "probability": posterior[0].probability if posterior else None,
        "agreement": agreement,
    }


def learned_trees(alignment: DataTable) -> dict[str, tuple[Tree, float | None]]:
    """Trees and seconds of all methods."""
    trees: dict[str, tuple[Tree, float | None]] = {}
    for name, options in OURS.items():
        model, seconds = timed_fit(alignment, 4, **options)
        trees[name] = model.tree_, seconds
    trees[RIVAL] = timed(lambda: joined(log_det(alignment), alignment.names))
    return trees


def best_fit(tree: Tree, alignment: DataTable) -> dict[str, float]:
    """The largest log-likelihood of the model with four states on a given tree, and its BIC."""
    samples, jobs = Samples(alignment), resolve_jobs(None)
    tree = tree.with_lengths(np.clip(tree.lengths, 0.01, 5.0)).reorder(alignment.names)
    start = copying_model(tree, marginals(alignment))
    model = run_em(start, samples, max_steps=300, n_jobs=jobs).model
    value = total_log_likelihood(model, samples, jobs)
    bic = value - model.n_parameters / 2 * np.log(samples.n_samples)
    return {"log_likelihood": value, "bic": bic}


def scores(tree: Tree, posterior: list[WeightedTree]) -> dict[str, Any]:
    """Distances to the trees of the posterior."""
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


COLUMNS = (
    Column("alignment", field("set")),
    Column("method", field("method")),
    Column("inner splits", field("inner")),
    *(Column(name, field(name)) for name in ("missing", "false")),
    Column("RF", field("rf")),
    Column("mean RF", field("mean_rf", ".2f")),
    Column("log-likelihood", field("log_likelihood", ".1f")),
    Column("BIC", field("bic", ".1f")),
    Column("s", field("seconds", ".1f")),
)


def body(record: Mapping[str, Any]) -> list[Grid | str]:
    """All methods; how far ours and neighbour joining agree."""
    said = []
    for name, found in record["sets"].items():
        top = found["probability"]
        known = "no posterior" if top is None else f"most probable tree has {top:.2f}"
        said.append(f"{name}: {found['taxa']} taxa, {found['sites']:,} sites, {found['gaps']:.1%} "
                    f"gaps; {known}.")  # fmt: skip
        said += [
            f"{name}: {method} and neighbour joining share {errors['shared']} inner splits; "
            f"{errors['missing']} only in neighbour joining, {errors['false']} only in ours."
            for method, errors in found["agreement"].items()
        ]
    return [make_grid(record["rows"], COLUMNS), *said]


TABLES = (
    Table(
        name="dna",
        shows="four alignments: RF to published posterior trees, likelihoods; neighbour joining",
        duration="1 min",
        title="DNA: trees of 27 to 36 taxa",
        about=ABOUT,
        measure=measure,
        body=body,
    ),
)
