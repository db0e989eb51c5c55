"""`TreeFit`: how well a tree describes the dependence of pairs, in numbers and in a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from latenttree.engine.arrays import Floats
from latenttree.errors import Phrase, Text

POOR = 0.9
"""Explained shares below this make a tree a poor picture."""

LARGE_RESIDUAL = 0.08
"""And so do root mean square residuals of correlations above this (Hu and Bentler 1999)."""

SURE = 4.0
"""Standard deviations by which a misfit must exceed its expectation under the model."""


@dataclass(frozen=True)
class MisfitPair:
    """A pair of variables.

    Attributes
    ----------
    first, second : names.
    observed, implied : correlation in the data and in the model; where either variable has more
        than one column the root of the sum of squared correlations.
    z : their difference in standard errors of the observed correlation.
    """

    first: str
    second: str
    observed: float
    implied: float
    z: float

    def __str__(self) -> str:
        return (
            f"{self.first} - {self.second}: observed {self.observed:.2f}, implied "
            f"{self.implied:.2f} (z = {self.z:.1f})"
        )


@dataclass(frozen=True, eq=False, repr=False)
class TreeFit:
    """How well a tree describes the dependence of pairs of variables.

    Attributes
    ----------
    explained : share of the pairwise dependence that the tree explains,
        `1 - sum (r - rho)^2 / sum r^2` over the observed correlations r and the implied rho of all
        pairs, each sum less what sampling noise contributes; about 1 for data drawn from the model
        (by chance also slightly above), NaN where the data show no dependence.
    srmr, cfi, rmsea : fit indices of ordered, binary and real data, see `indices.fit_indices`; NaN
        where a variable is unordered or a vector; cfi and rmsea also where there are no more
        samples than variables, no degrees of freedom, or a matrix is not positive definite.
    degrees_of_freedom : correlations less the free parameters of their structure, at least 0.
    residual : root mean square of `r - rho`, less noise: the SRMR that many samples would give.
    excess : by how many standard deviations the residuals exceed their expectation under the
        model, roughly.
    worst : the pairs that contribute most to what is not explained, worst first.
    node_explained : (n_hidden,) `explained` of the pairs around each hidden node: of the nearest
        variables of its branches; NaN where these show no dependence.
    node_residual : (n_hidden,) root mean square of `r - rho` of these pairs, less noise.
    n_samples : samples that were used; a random part of large tables.
    n_used, n_vars : variables that were used, at random where there are many, and all of them.
    """

    explained: float
    srmr: float = np.nan
    cfi: float = np.nan
    rmsea: float = np.nan
    degrees_of_freedom: int = 0
    residual: float = 0.0
    excess: float = 0.0
    worst: tuple[MisfitPair, ...] = ()
    node_explained: Floats = field(default_factory=lambda: np.empty(0))
    node_residual: Floats = field(default_factory=lambda: np.empty(0))
    n_samples: int = 0
    n_used: int = 0
    n_vars: int = 0

    @property
    def poor(self) -> bool:
        """Whether a tree is a poor picture of the data, beyond doubt."""
        if not self.excess > SURE:
            return False
        sure = 1 - SURE / self.excess  # share of the misfit that is beyond noise
        missing, squared = 1 - self.explained, self.residual**2
        return bool(missing * sure > 1 - POOR or squared * sure > LARGE_RESIDUAL**2)

    def sentences(self) -> list[str]:
        """What a person should know where a tree is a poor picture; none otherwise."""
        if not self.poor:
            return []
        pairs = "; ".join(f"{pair.first} - {pair.second}" for pair in self.worst[:2])
        return [
            Text(
                "the tree is a poor picture of these data: it explains "
                f"{max(self.explained, 0):.0%} of the pairwise dependence, and the correlations "
                f"that it implies are off by {self.residual:.2f} (root mean square; worst: "
                f"{pairs}); ",
                Phrase("figures of fit", "see diagnostics_.fit"),
            )
        ]

    def summary(self) -> str:
        """One line of figures."""
        if np.isnan(self.explained):
            return "the pairs show no dependence that a tree could explain"
        known = {"SRMR": self.srmr, "CFI": self.cfi, "RMSEA": self.rmsea}
        shown = [f"{name} {x:.3f}" for name, x in known.items() if not np.isnan(x)]
        line = f"{min(self.explained, 1.0):.1%} of the pairwise dependence explained"
        return "; ".join([line, *shown])

    def __str__(self) -> str:
        part = (
            f" ({self.n_used:,} of {self.n_vars:,} variables, {self.n_samples:,} samples)"
            if self.n_used < self.n_vars
            else ""
        )
        return "\n".join([self.summary() + part, *(f"  {pair}" for pair in self.worst[:5])])

    def __repr__(self) -> str:
        return f"TreeFit({self.summary()})"

    def to_record(self) -> dict[str, Any]:
        """The values, for a file."""
        known = {spec.name: getattr(self, spec.name) for spec in fields(self)}
        return known | {"worst": [list(vars(pair).values()) for pair in self.worst]}

    @classmethod
    def restored(cls, record: Any) -> TreeFit | None:
        """From the values in a file; None where they are damaged."""
        if not isinstance(record, Mapping):
            return None
        known = {spec.name: record[spec.name] for spec in fields(cls) if spec.name in record}
        try:
            for name in ("node_explained", "node_residual"):
                known[name] = np.asarray(known.get(name, []), dtype=np.float64)
            known["worst"] = tuple(
                MisfitPair(str(a), str(b), float(r), float(rho), float(z))
                for a, b, r, rho, z in known.get("worst", [])
            )
            for name in ("explained", "srmr", "cfi", "rmsea", "residual", "excess"):
                known[name] = float(known.get(name, np.nan))
            for name in ("degrees_of_freedom", "n_samples", "n_used", "n_vars"):
                known[name] = int(known.get(name, 0))
        except (TypeError, ValueError, OverflowError):
            return None
        return cls(**known)
