"""All that is recorded of a model."""

from __future__ import annotations

import io
import json
import re
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import latenttree as lt
from benchmarks.answers.containers import arrays_of, digest, rows, with_holes
from benchmarks.answers.tasks import Arrays, Task

ASKED, KNOWN = 200, 1000
"""Rows that posteriors are recorded of, and likelihoods."""


def answers_of(model: Any, given: Task) -> Arrays:
    """All that is recorded of a model, as `part/name`."""
    found = {**_of_tree(model), **_of_report(model)}
    facts = {"data": digest(given.X), "families": model.families_}
    if hasattr(model, "model_"):
        found |= _parameters(model)
        found |= {f"answers/{k}": a for k, a in _asked(model, given).items()}
        facts |= {"feature_names_out": model.get_feature_names_out().tolist()}
        facts |= {"n_parameters": model.model_.n_parameters, "n_iter": model.n_iter_}
    facts |= {"newick": _rounded(model.to_newick()), "drawing": model.tree_.draw()}
    if hasattr(model, "distances_"):
        found["answers/distances"] = np.asarray(model.distances_.values)
    return found | {f"facts/{name}": as_text(fact) for name, fact in facts.items()}


def as_text(fact: Any) -> NDArray[Any]:
    """A fact as text that a file can hold."""
    return np.asarray(json.dumps(fact, default=_listed))


def _rounded(text: str) -> str:
    """Text whose numbers are rounded: they are compared elsewhere."""
    return re.sub(r"\d+\.\d+(e-?\d+)?", lambda number: f"{float(number[0]):.6f}", text)


def _listed(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)


def _of_tree(model: Any) -> Arrays:
    tree = model.tree_
    names = np.asarray(tree.names, dtype=str)
    return {
        "tree/names": names,
        "tree/n_observed": np.asarray(tree.n_observed),
        "tree/edges": np.asarray(tree.edges).reshape(-1, 2),
        "lengths/lengths": np.asarray(tree.lengths),
        "support/support": np.asarray(model.diagnostics_.support),
    }


UNREPEATABLE = ("stage_seconds", "peak_memory", "support")
"""What a report says that other runs do not, and what is recorded elsewhere."""

BYTES = re.compile(r"[\d.,]+ (bytes|[KMG]iB)")


def _of_report(model: Any) -> Arrays:
    """What the fit says about itself: numbers as answers, everything else as facts."""
    found = {}
    for name, value in vars(model.diagnostics_).items():
        if name in UNREPEATABLE:
            continue
        if name == "messages":
            value = [BYTES.sub("some bytes", sentence) for sentence in value]
        numbers = _numbers(value)
        if numbers is None:
            found[f"facts/{name}"] = as_text(value)
        else:
            found[f"answers/{name}"] = numbers
    return found


def _numbers(value: Any) -> NDArray[np.float64] | None:
    """Real numbers as an array; None for what is none."""
    if isinstance(value, np.ndarray) and value.dtype.names:
        return np.stack([np.asarray(value[name], dtype=np.float64) for name in value.dtype.names])
    is_float = isinstance(value, float) or (
        isinstance(value, list) and any(isinstance(x, float) for x in value)
    )
    if is_float or (isinstance(value, np.ndarray) and value.dtype.kind == "f"):
        return np.asarray(value, dtype=np.float64)
    return None


def _parameters(model: Any) -> Arrays:
    """All numbers of a model: what `save` writes, and the distributions of all nodes and edges."""
    tree = model.tree_
    found = {f"parameters/{name}": array for name, array in _saved(model).items()}
    names = [str(name) for name in tree.names]
    single = [model.marginal(name) for name in names]
    pairs = [model.conditional(names[a], given=names[b]) for a, b in tree.edges.tolist()]
    return found | {"parameters/marginals": _joined(single), "parameters/edges": _joined(pairs)}


def _joined(parts: Iterable[Any]) -> NDArray[np.float64]:
    return np.concatenate([np.zeros(0), *(np.ravel(part) for part in parts)])


def _saved(model: Any) -> Arrays:
    """The arrays of a saved model, and what it says of all nodes when it is read again."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.ltree"
        model.save(path)
        with zipfile.ZipFile(path) as archive:
            packed = [name for name in archive.namelist() if name.endswith(".npz")]
            contents = [archive.read(name) for name in packed]
        again = lt.load(path)
    found: Arrays = {}
    for content in contents:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            found |= {f"saved {name}": arrays[name] for name in arrays.files}
    read = [again.marginal(name) for name in map(str, again.tree_.names)]
    return found | {"loaded marginals": _joined(read)}


def _asked(model: Any, given: Task) -> Arrays:
    """Answers to questions about the rows that the model was learned from."""
    few, more = rows(given.X, slice(ASKED)), rows(given.X, slice(KNOWN))
    weights = given.weights
    found = {
        "score": np.asarray(model.score(given.X, sample_weight=weights)),
        "bic": np.asarray(model.bic(given.X, sample_weight=weights)),
        "likelihoods": model.score_samples(more),
        "hidden": model.transform(few),
        "states": model.predict(few),
        "joint states": model.predict(few, joint=True),
    }
    known = ("categorical", "ordinal", "binary", "presence")
    coded = [name for name, family in model.families_.items() if family in known]
    if coded:
        found["probabilities"] = model.predict_proba(few, query=coded[0])
    drawn, hidden = model.sample(30, random_state=1)
    holes = with_holes(rows(given.X, slice(30)))
    found |= {"drawn hidden": hidden} | arrays_of(drawn, "drawn")
    found |= arrays_of(model.impute(holes), "filled")
    found |= arrays_of(model.impute(holes, method="sample", random_state=2), "drawn gaps")
    states = given.options.get("hidden") != "gaussian"
    return found | _recalled(model, coded) if states else found


def _recalled(model: Any, coded: Sequence[str]) -> Arrays:
    """Answers to records: what a label, and a hidden state, say of other variables."""
    found: Arrays = {}
    if coded:
        label = model.classes_of(coded[0])[0]
        found |= arrays_of(model.impute({coded[0]: label}), "expected")
    hidden = list(model.tree_.hidden_names)
    others = [*hidden[1:6], *coded[:5]]
    if hidden and others:
        certain, weighed = {hidden[0]: 0}, {hidden[0]: {0: 0.3, 1: 0.7}}
        found |= arrays_of(model.predict_proba(certain, query=others), "given state")
        found |= arrays_of(model.predict_proba(weighed, query=others), "given weights")
    return found
