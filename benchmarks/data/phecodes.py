"""Diagnoses of 71,517 patients with diabetes as phecodes, and the hierarchy of these."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from benchmarks.rivals.hierarchies import from_groups
from latenttree.data import Events, read_events
from latenttree.tree import Tree

if TYPE_CHECKING:
    import pandas as pd

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
    sparse_binary: sparse.csr_array
    names: tuple[str, ...]
    labels: list[str]
    truth: Tree


def read_phecodes(
    files: Sequence[Path], patients: int | None, min_patients: int
) -> tuple[Events, pd.DataFrame]:
    """Patients and phecodes, and what the phecodes mean."""
    import pandas as pd

    events = pd.read_csv(files[0], dtype=str)
    chosen = events["patient_nbr"].unique()[:patients]
    events["icd9"] = events["icd9"].map(padded)
    known = pd.read_csv(files[1], dtype=str)
    known = known.loc[known["vocabulary_id"] == "ICD9CM", ["code", "phecode"]]
    diagnoses = read_events(
        events,
        sample="patient_nbr",
        code="icd9",
        roll_up=known,
        min_count=min_patients,
        all_samples=chosen,
    )
    return diagnoses, pd.read_csv(files[2], dtype=str).set_index("phecode")


def padded(code: str) -> str:
    """Three characters before the point: "8" is 008."""
    whole, point, rest = code.partition(".")
    return whole.zfill(3) + point + rest


def binary(events: Events, info: pd.DataFrame) -> Form:
    """Each phecode present or absent."""
    names = tuple(called(code, info) for code in events.names)
    nested: dict[str, list[str]] = {}
    for code, name in zip(events.names, names, strict=True):
        whole, _, rest = code.partition(".")
        for group in {str(info.loc[code, "group"]), whole, f"{whole}.{rest[:1]}"}:
            nested.setdefault(group, []).append(name)
    labels = [str(info.loc[code, "group"]) for code in events.names]
    truth = from_groups(names, nested.values())
    return Form(events.matrix, {}, events.matrix, names, labels, truth)


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
    truth = from_groups(names, nested.values())
    return Form(X, families, _any(events, named), names, labels, truth)


FORMS = {"binary": binary, "multihot": multi_hot}


def _any(events: Events, named: dict[str, list[int]]) -> sparse.csr_array:
    """Whether a patient has any code of a family, `(n, families)`."""
    rows = np.concatenate(list(named.values()))
    at = np.repeat(np.arange(len(named)), [len(columns) for columns in named.values()])
    chosen = sparse.csr_array((np.ones(len(rows)), (rows, at)), (len(rows), len(named)))
    return sparse.csr_array((events.matrix.astype(np.float64) @ chosen) > 0)


def called(code: str, info: pd.DataFrame) -> str:
    """Code and description, cut short."""
    return f"{code} {textwrap.shorten(str(info.loc[code, 'description']), 44, placeholder=' ...')}"


def correlations(matrix: sparse.csr_array) -> NDArray[np.float64]:
    """Pearson correlations of 0/1 columns."""
    x = matrix.astype(np.float64)
    n, share = x.shape[0], np.asarray(x.mean(axis=0)).ravel()
    covariance = (x.T @ x).toarray() / n - np.outer(share, share)
    deviation = np.sqrt(share * (1 - share))
    return np.asarray(covariance / np.outer(deviation, deviation))
