"""Evidence on samples: states of observed nodes, and likelihoods over the states of nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from latenttree.errors import DataError
from latenttree.model.emissions.common import largest
from latenttree.model.inference.distribution import Distribution

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Evidence:
    """Hard evidence on observed nodes and soft evidence on any node.

    Attributes
    ----------
    codes : (n, p) states of the observed nodes, any integer type, -1 where unknown; or a CSR array
        of binary variables, in which every stored entry is a one.
    soft : node -> weights >= 0 over its states, `(n, dims[v])` or `(dims[v],)` for all samples:
        the likelihood of an observation that depends on the node alone.
    log_scale : (n,) logarithm of the scale of the weights, to be added to log-likelihoods.
    """

    codes: Any
    soft: Mapping[int, NDArray[Any]] = field(default_factory=dict)
    log_scale: Floats | None = None

    def __len__(self) -> int:
        return int(np.shape(self.codes)[0])

    @classmethod
    def nothing(cls, model: Distribution, n: int = 1) -> Evidence:
        """No evidence at all on `n` samples."""
        return cls(np.full((n, model.tree.n_observed), -1, dtype=np.int8))


def dense_codes(codes: Any) -> NDArray[Any]:
    """Codes as an array."""
    return np.asarray(codes.toarray() != 0, dtype=np.int8) if issparse(codes) else np.asarray(codes)


def is_ones(model: Distribution, evidence: Evidence) -> bool:
    """Whether evidence is CSR rows of ones of binary variables, and nothing else."""
    if evidence.soft or not issparse(evidence.codes):
        return False
    p, width = model.tree.n_observed, evidence.codes.shape[1]
    if width != p:
        raise DataError(
            f"rows have {width} variables, the model {p}",
            "give one column for each variable of the model",
            value=width,
        )
    return bool((model.dims[:p] == 2).all())


class Ones(NamedTuple):
    """Samples by the variables that are one."""

    indptr: NDArray[np.int64]  # (n + 1,)
    leaf: NDArray[np.int32]  # variables

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @classmethod
    def of(cls, rows: Any) -> Ones:
        """Of CSR rows; nothing is copied but the row pointers."""
        leaf = np.asarray(rows.indices, dtype=np.int32)
        return cls(np.asarray(rows.indptr, dtype=np.int64), leaf)


def check_codes(model: Distribution, evidence: Evidence) -> NDArray[Any]:
    """The codes as an `(n, p)` array of integers. Values are checked where they are read."""
    codes = dense_codes(evidence.codes)
    p = model.tree.n_observed
    if codes.ndim != 2 or codes.shape[1] != p or codes.dtype.kind not in "iu":
        raise DataError(
            f"codes have shape {codes.shape} and type {codes.dtype}",
            f"pass integers of shape (n, {p}), -1 where a value is unknown",
            value=codes.shape,
        )
    return codes


def unknown_code(model: Distribution, codes: NDArray[Any]) -> DataError:
    """The error for codes that are no states of their nodes."""
    below, above = codes < -1, codes.astype(np.int64) >= model.dims[: codes.shape[1]]
    row, v = np.argwhere(below | above)[0]
    name = model.tree.names[v]
    return DataError(
        f"sample {row} has code {codes[row, v]} for {name!r}, which has states "
        f"0..{model.dims[v] - 1}",
        "use -1 where the value is unknown or did not occur in training",
        value=int(codes[row, v]),
        row=int(row),
        column=name,
    )


class Soft(NamedTuple):
    """Soft evidence side by side, every row scaled to a largest weight of 1."""

    weights: Floats  # (n, width)
    first: dict[int, int]  # first column of every node with soft evidence
    bits: dict[int, float]  # -log2 of the smallest positive weight of a node
    log_scale: Floats  # (n,) logarithm of the scales


def stacked_soft(model: Distribution, evidence: Evidence) -> Soft:
    """Check and scale soft evidence.

    A row without a positive weight stays zero: its sample is impossible."""
    n, width = len(evidence), 0
    parts = []
    log_scale = np.zeros(n) if evidence.log_scale is None else evidence.log_scale.copy()
    first, bits = {}, {}
    for v, weights in sorted(evidence.soft.items()):
        w = _checked_weights(model, int(v), np.asarray(weights, dtype=np.float64), n)
        top = largest(w)
        log_scale += np.log(np.where(top > 0, top, 1.0))
        parts.append(w / np.where(top > 0, top, 1.0)[:, None])
        bits[int(v)] = -float(np.log2(parts[-1].min(where=parts[-1] > 0, initial=1.0)))
        first[int(v)], width = width, width + w.shape[1]
    stacked = np.concatenate(parts, axis=1) if parts else np.empty((n, 0))
    return Soft(np.ascontiguousarray(stacked), first, bits, log_scale)


def _checked_weights(model: Distribution, v: int, weights: Floats, n: int) -> Floats:
    """Weights of a node as `(n, dims[v])`, finite and >= 0."""
    if not 0 <= v < model.tree.n_nodes:
        last = model.tree.n_nodes - 1
        raise DataError(f"soft evidence on node {v}; nodes are 0..{last}", value=v, node=str(v))
    name, d = model.tree.names[v], int(model.dims[v])
    if weights.shape not in ((d,), (n, d)):
        raise DataError(
            f"soft evidence on {name!r} has shape {weights.shape}",
            f"pass ({d},) or ({n}, {d})",
            value=weights.shape,
            node=name,
        )
    if not (np.isfinite(weights) & (weights >= 0)).all():
        bad = weights[~(np.isfinite(weights) & (weights >= 0))][0]
        raise DataError(
            f"soft evidence on {name!r} holds {bad}",
            "give weights that are finite and >= 0",
            value=float(bad),
            node=name,
        )
    return np.asarray(np.broadcast_to(weights, (n, d)))
