"""What a fit reports about itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(eq=False)
class Diagnostics:
    """Evidence behind a learned tree.

    Attributes
    ----------
    n_states : states of the hidden variables that were used.
    hidden_states : (n_hidden,) states, or dimensions, of every hidden variable; fewer than
        `n_states` where `n_states="auto"` and the data support no more.
    n_states_evidence : with `n_states="auto"`, one row for each possible direction: held-out
        canonical correlation (median over variables) and the share of variables in which it is
        significant.
    support : (E,) posterior probability that each edge of `tree_` is real; 0 marks an edge that
        joins parts between which the data show no dependence.
    standard_errors : (E,) of the edge lengths; infinite between parts at infinite distance, zero
        where not estimated.
    n_unmeasurable : pairs of variables whose distance does not stand out of its noise.
    n_pairs : all pairs.
    group_sizes : sizes of the local groups, largest first.
    sweeps : for each connected part the number of changes in each consistency sweep.
    n_components : parts between which the data show no dependence.
    n_duplicates : variables that copy another one.
    effective_depth : largest distance from a hidden node to its nearest observed node.
    samples_needed : samples at which the weakest kept internal edge would reach z = 4.
    n_rounds : power rounds that the subspaces took.
    condition : (n_hidden,) by how much errors of the moments grow in the decomposition of each
        hidden node.
    effective_samples : (n_hidden,) in how many samples each hidden node would have to be seen to
        know as much about it.
    log_likelihood_trace : log-likelihood before each step of refinement (with the prior of the
        smoothing); never decreasing.
    held_out_trace : log-likelihood of held-out samples, with `validation_fraction`.
    converged : whether refinement ended by its tolerance.
    stage_seconds : time of each stage.
    peak_memory : most bytes that the process had held by the end of the fit; 0 where the system
        does not say.
    messages : sentences for people: what was dropped, joined or doubtful.
    """

    n_states: int
    hidden_states: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    n_states_evidence: NDArray[Any] | None = None
    support: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    standard_errors: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    n_unmeasurable: int = 0
    n_pairs: int = 0
    group_sizes: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    sweeps: list[list[int]] = field(default_factory=list)
    n_components: int = 1
    n_duplicates: int = 0
    effective_depth: float = 0.0
    samples_needed: int = 0
    n_rounds: int = 0
    condition: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    effective_samples: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    log_likelihood_trace: list[float] = field(default_factory=list)
    held_out_trace: list[float] = field(default_factory=list)
    converged: bool = True
    stage_seconds: dict[str, float] = field(default_factory=dict)
    peak_memory: int = 0
    messages: list[str] = field(default_factory=list)

    @classmethod
    def restored(cls, record: Mapping[str, Any], support: Any = None) -> Diagnostics:
        """From the values in a file; what is unknown or of another type is left out."""
        report = cls(n_states=0)
        for spec in fields(cls):
            if spec.name not in record:
                continue
            value, default = record[spec.name], getattr(report, spec.name)
            try:
                if isinstance(default, np.ndarray):
                    value = np.asarray(value, dtype=default.dtype)
                if default is None or isinstance(value, type(default)):
                    setattr(report, spec.name, value)
            except (TypeError, ValueError, OverflowError):
                continue
        if support is not None:
            report.support = np.asarray(support, dtype=np.float64)
        return report

    @property
    def n_sweeps(self) -> int:
        """Sweeps of the part that took most."""
        return max((len(changes) for changes in self.sweeps), default=0)

    def __str__(self) -> str:
        lines = [
            f"{self.n_states} states; {self.n_unmeasurable:,} of {self.n_pairs:,} pairs "
            f"unmeasurable; {len(self.group_sizes):,} groups of up to "
            f"{max(self.group_sizes, default=0)}; "
            f"{self.n_sweeps} sweeps",
            *self.messages,
            *(f"{name:<14}{seconds:8.2f} s" for name, seconds in self.stage_seconds.items()),
        ]
        return "\n".join(lines)
