"""`Diagnostics`: what a fit reports about itself, in numbers and in sentences."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from latenttree.data import Table, free_dimensions
from latenttree.distances.number_of_states import states_shown
from latenttree.distances.stage import Measured, States
from latenttree.engine.arrays import Floats, Ints
from latenttree.engine.memory import peak_memory
from latenttree.errors import DataWarning, Option, Text
from latenttree.goodness_of_fit import TreeFit
from latenttree.model.state_bounds import most_states
from latenttree.model.tree_model import TreeModel
from latenttree.phrases import counted, listed, sizes_in_words, support_in_words
from latenttree.refinement.fitted import Fitted
from latenttree.search.stage import Learned
from latenttree.structure.learn import Structure
from latenttree.structure.resampling import Support
from latenttree.structure.summary import (
    effective_depth,
    independent_variables,
    samples_needed,
)

WORST_CONDITION = 1e4
"""Growth of errors in a decomposition beyond which its parameters rest on refinement."""

SHOWN, SHOWN_VARIABLES = 3, 10
"""Hidden nodes, and variables, that a sentence names."""

MANY_NUMBERS = 4
"""Different numbers of states from which on these are only summarised."""


@dataclass(eq=False, repr=False)
class Diagnostics:
    """Evidence behind a learned tree.

    Attributes
    ----------
    n_states : the most states, or dimensions, of a hidden variable.
    gaussian : whether hidden variables are real vectors, with dimensions instead of states.
    hidden_states : (n_hidden,) number of states, or dimensions, of every hidden variable; less than
        `n_states` where the data support fewer, or its branches have fewer configurations.
    n_states_evidence : with `n_states="auto"`, one row for each possible direction: held-out
        canonical correlation (median over variables) and the share of variables in which it is
        significant.
    states_tried : with "auto" or more states than moments determine, one dict for each number of
        states and shape of the tree that were compared on held-out samples: "n_states", "shape",
        "held_out" (mean log-likelihood of a sample), "gain" (over the model of few states, which
        is the first) and its "standard_error".
    support : (E,) for each edge of `tree_` how often it comes back in samples like these; see
        `structure.resampling.estimate_support`. 1 for the edge to a leaf, which every tree has; 0
        for an edge that joins parts between which the data show no dependence. With
        `support_method` "model" the posterior probability that the edge's length is not zero, times
        the share of agreeing optima: of the local optima that sweeps ended in from several starts,
        weighted by likelihood, those that have the edge (1 where there was one start). For an edge
        that the search made: the share of likelihood of those topologies of its region that contain
        it.
    support_method : "subsample", "bootstrap" or "model"; "none" where a tree was learned without
        either, or given.
    n_resamples : trees that were learned for the support.
    residual : mean squared residual of pairs of variables from what the tree of the structure
        stage implies, in units of their sampling variance: about 1 if the data come from a tree,
        NaN where it is not known. Beyond 1.4 `support="auto"` resamples.
    standard_errors : (E,) of the edge lengths; infinite between parts at infinite distance, zero
        where not estimated.
    n_unmeasurable : pairs of variables whose distance does not stand out of its noise.
    n_pairs : number of all pairs.
    group_sizes : sizes of the MST groups, largest first.
    sweeps : for each connected component the number of changes in each sweep.
    n_components : components between which the data show no dependence.
    independent : names of the variables that depend on no other one.
    n_duplicates : variables that are copies of another one.
    effective_depth : largest distance from a hidden node to its nearest observed node.
    samples_needed : samples at which the weakest internal edge would be 4 standard errors long.
    n_rounds : power iterations for the subspaces.
    condition : (n_hidden,) factor by which the decomposition at each hidden node amplifies errors
        of the moments.
    effective_samples : (n_hidden,) number of samples with an observed state that would carry the
        same information about each hidden node.
    log_likelihood_trace : log-likelihood before each EM step (plus the log-prior of the
        smoothing); never decreasing. A model of many states, refined in batches, has the final
        value only.
    held_out_trace : log-likelihood of held-out samples, with `validation_fraction`; of a model of
        many states its mean after each pass.
    converged : whether EM stopped by its tolerance; in batches, by the held-out samples.
    fit : how well the tree describes the dependence of pairs of variables, see `TreeFit`; None
        where there is no model.
    stage_seconds : seconds of each stage.
    peak_memory : most bytes that the process had held by the end of the fit; 0 where the system
        does not say.
    messages : sentences about what was dropped, joined or doubtful.
    """

    n_states: int
    gaussian: bool = False
    hidden_states: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    n_states_evidence: NDArray[Any] | None = None
    states_tried: list[dict[str, Any]] = field(default_factory=list)
    support: Floats = field(default_factory=lambda: np.empty(0))
    support_method: str = "model"
    n_resamples: int = 0
    residual: float = float("nan")
    standard_errors: Floats = field(default_factory=lambda: np.empty(0))
    n_unmeasurable: int = 0
    n_pairs: int = 0
    group_sizes: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    sweeps: list[list[int]] = field(default_factory=list)
    n_components: int = 1
    independent: list[str] = field(default_factory=list)
    n_duplicates: int = 0
    effective_depth: float = 0.0
    samples_needed: int = 0
    n_rounds: int = 0
    condition: Floats = field(default_factory=lambda: np.empty(0))
    effective_samples: Floats = field(default_factory=lambda: np.empty(0))
    log_likelihood_trace: list[float] = field(default_factory=list)
    held_out_trace: list[float] = field(default_factory=list)
    converged: bool = True
    fit: TreeFit | None = None
    stage_seconds: dict[str, float] = field(default_factory=dict)
    peak_memory: int = 0
    messages: list[str] = field(default_factory=list)

    @classmethod
    def restored(cls, record: Mapping[str, Any], support: Any = None) -> Diagnostics:
        """Diagnostics from the values in a file; unknown names and wrong types are left out."""
        report = cls(n_states=0)
        for spec in fields(cls):
            if spec.name not in record:
                continue
            value, default = record[spec.name], getattr(report, spec.name)
            if spec.name == "fit":
                value = TreeFit.restored(value)
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
        """Number of sweeps of the component that took most."""
        return max((len(changes) for changes in self.sweeps), default=0)

    @property
    def sizes(self) -> str:
        """Numbers of states, or dimensions, in words."""
        sizes = self.hidden_states if len(self.hidden_states) else [self.n_states]
        return sizes_in_words(sizes, "dimension" if self.gaussian else "state")

    def __repr__(self) -> str:
        return f"Diagnostics({'; '.join(self.headlines())})"

    def headlines(self) -> list[str]:
        """What was learned, in a few phrases."""
        lines = [f"{counted(len(self.hidden_states), 'hidden variable')} of {self.sizes}"]
        uncertain = self.support[(self.support > 0) & (self.support < 1)]
        if uncertain.size:
            lines.append(f"median support of uncertain edges {np.median(uncertain):.2f}")
        if self.fit is not None:
            lines.append(self.fit.summary())
        lines.append(f"{sum(self.stage_seconds.values()):.1f} s")
        if self.messages:
            lines.append(counted(len(self.messages), "message"))
        return lines

    def _repr_html_(self) -> str:
        """What notebooks show: phrases, messages, and the rest folded."""
        lines = "".join(f"<li>{escape(line)}</li>" for line in self.headlines())
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.messages)
        return (
            f"<div><b>Diagnostics</b><ul>{lines}</ul>"
            + (f"<b>Messages</b><ul>{notes}</ul>" if notes else "")
            + f"<details><summary>more</summary><pre>{escape(str(self))}</pre></details></div>"
        )

    def __str__(self) -> str:
        support = support_in_words(self.support_method, self.n_resamples)
        lines = [
            f"{self.sizes}; {self.n_unmeasurable:,} of {self.n_pairs:,} pairs "
            f"unmeasurable; {len(self.group_sizes):,} groups of up to "
            f"{max(self.group_sizes, default=0)}; "
            f"{self.n_sweeps} sweeps",
            *([f"support of an edge: {support}"] if support else []),
            *([] if self.fit is None else [self.fit.summary()]),
            *tried_in_words(self.states_tried),
            *self.messages,
            *(f"{name:<18}{seconds:8.2f} s" for name, seconds in self.stage_seconds.items()),
        ]
        return "\n".join(lines)


def diagnose(
    table: Table,
    states: States,
    measured: Measured,
    learned: Learned,
    seconds: dict[str, float],
    support: Support | None = None,
    fit: TreeFit | None = None,
    residual: float = float("nan"),
) -> Diagnostics:
    """The report of a fit, gathered from the results of its stages; without `support`, edges have
    that of the structure stage."""
    structure, fitted = learned.structure, learned.fitted
    support = support or Support(structure.support, "model")
    p = table.n_vars
    report = Diagnostics(
        n_states=states.n_states,
        n_states_evidence=states.evidence,
        states_tried=list(learned.tried),
        support=support.values,
        support_method=support.method,
        n_resamples=support.n_resamples,
        residual=residual,
        standard_errors=structure.standard_errors,
        n_unmeasurable=measured.n_unmeasurable,
        n_pairs=p * (p - 1) // 2,
        group_sizes=structure.group_sizes,
        sweeps=structure.sweeps,
        n_components=structure.n_components,
        independent=independent_variables(structure),
        n_duplicates=structure.n_duplicates,
        effective_depth=effective_depth(structure.tree),
        samples_needed=samples_needed(structure, table.total_weight) if p > 2 else 0,
        n_rounds=measured.n_rounds,
        fit=fit,
        stage_seconds=seconds,
        peak_memory=peak_memory() or 0,
        messages=[
            *_data_messages(table),
            *_states_messages(table, states),
            *_goal_messages(states, fitted),
            *_structure_messages(structure),
            *_model_messages(fitted),
            *_memory_messages(measured),
            *([] if fit is None else fit.sentences()),
        ],
    )
    if fitted is not None:
        _describe_model(report, fitted)
    if 2 < p == len(report.independent):
        what = f"none of the {p} variables depends on another: the tree has no meaning"
        warnings.warn(what, DataWarning, stacklevel=3)
    return report


def _describe_model(report: Diagnostics, fitted: Fitted) -> None:
    """Fill in what is known of the parameters; warn where EM did not converge."""
    report.condition, report.effective_samples = fitted.condition, fitted.effective_samples
    report.gaussian = not isinstance(fitted.model, TreeModel)
    report.hidden_states = np.asarray(fitted.model.dims[fitted.model.tree.n_observed :])
    report.n_states = int(report.hidden_states.max(initial=report.n_states))
    report.log_likelihood_trace, report.held_out_trace = fitted.trace, fitted.held_out
    report.converged = fitted.converged
    if not fitted.converged and not _in_batches(fitted):
        warnings.warn(_not_converged(fitted), ConvergenceWarning, stacklevel=4)


def tried_in_words(tried: Sequence[Mapping[str, Any]]) -> list[str]:
    """Which numbers of states were compared, a line each; none where nothing was compared."""
    if not tried:
        return []
    lines = ["states compared on held-out samples, by log-likelihood of a sample:"]
    for row in tried:
        gain = f" ({row['gain']:+.3f} +- {row['standard_error']:.3f})"
        states = f"{counted(row['n_states'], 'state')}, {row['shape']}"
        lines.append(f"  {states}: {row['held_out']:.3f}{'' if row is tried[0] else gain}")
    return lines


def _data_messages(table: Table) -> list[str]:
    """What happened to the data before learning."""
    messages = list(table.notes)
    if table.dropped and not any("kept" in message for message in messages):
        shown = ", ".join(table.dropped[:5]) + (", ..." if len(table.dropped) > 5 else "")
        some = (
            "1 variable was" if len(table.dropped) == 1 else f"{len(table.dropped)} variables were"
        )
        messages.append(f"{some} left out: {shown}")
    return messages


def _states_messages(table: Table, states: States) -> list[str]:
    """Why no more states were chosen, where the narrowest variable is the reason."""
    if states.evidence is None:
        return []
    n_states, free = states.n_directions + 1, free_dimensions(table)
    if n_states <= int(free.min()) or n_states >= states_shown(states.evidence):
        return []
    name = table.names[int(free.argmin())]
    return [
        f"the structure was learned with {n_states} states, the most that variable {name!r} can "
        "distinguish; leave out such variables to learn it with more"
    ]


def _goal_messages(states: States, fitted: Fitted | None) -> list[str]:
    """That there are fewer states than were asked for."""
    if fitted is None or not isinstance(states.goal, int):
        return []
    found = fitted.model.dims[fitted.model.tree.n_observed :]
    if not len(found) or int(found.max()) >= states.goal:
        return []
    return [
        Text(
            f"hidden variables have {sizes_in_words(found)}, fewer than ",
            Option("n_states", states.goal),
            ": more take ",
            Option("refine", "em"),
            " and branches with as many configurations",
        )
    ]


def _structure_messages(structure: Structure) -> list[str]:
    """Independent parts and copied variables."""
    messages = list(structure.notes)
    if structure.n_components > 1:
        messages.append(
            f"the data show {structure.n_components} parts without dependence between them; the "
            f"edges that join them have support 0{_without_others(structure)}"
        )
    if structure.n_duplicates == 1:
        messages.append("1 variable copies another one and is attached to it at distance 0")
    elif structure.n_duplicates:
        messages.append(
            f"{structure.n_duplicates} variables copy another one and are attached to it at "
            "distance 0"
        )
    return messages


def _without_others(structure: Structure) -> str:
    """Which parts are single variables, as the end of a sentence."""
    names = independent_variables(structure)
    if not names:
        return ""
    shown = listed(names, SHOWN_VARIABLES)
    if len(names) == 1:
        return f"; variable {shown} depends on no other"
    return f"; variables {shown} depend on no other"


def _model_messages(fitted: Fitted | None) -> list[str]:
    """Missing models, numbers of states, convergence and ill-conditioned moments."""
    if fitted is None:
        return [
            "one or two variables that are not categorical have no hidden variable and no model: "
            "questions about probabilities are refused"
        ]
    messages: list[str] = []
    if isinstance(fitted.model, TreeModel):
        messages += states_summary(fitted.model)
    if not fitted.converged:
        messages.append(_not_converged(fitted))
    ill_conditioned = int((fitted.condition > WORST_CONDITION).sum())
    if ill_conditioned:
        messages.append(
            f"the moments of {ill_conditioned} of {len(fitted.condition)} hidden nodes are "
            "ill-conditioned (diagnostics_.condition); their parameters rest on refinement"
        )
    return messages


def _in_batches(fitted: Fitted) -> bool:
    """Whether the model was refined in batches, until held-out samples gained no more: there are no
    steps over all samples then, and the number of passes has bounds of its own."""
    return len(fitted.trace) < 2 and len(fitted.held_out) > 0


def _not_converged(fitted: Fitted) -> str:
    if _in_batches(fitted):
        n = len(fitted.held_out)
        return f"the likelihood of held-out samples was still rising after {n} passes in batches"
    steps = len(fitted.trace) - 1
    return Text(f"refinement was still gaining after {steps} steps; raise ", Option("max_iter"))


def _memory_messages(measured: Measured) -> list[str]:
    """How distances were fitted into memory, where that took a detour."""
    plan = measured.plan
    return [plan.sentence()] if plan is not None and plan.mode == "on demand" else []


def states_summary(model: TreeModel) -> list[str]:
    """Which hidden nodes have fewer states than the others, in sentences, one where they differ
    much; none where all have as many as their branches have configurations."""
    p = model.tree.n_observed
    states = model.dims[p:]
    most = int(states.max(initial=0))
    observed = np.array([0 if v in model.emissions else d for v, d in enumerate(model.dims[:p])])
    fewer = states < most_states(model.tree, observed, most)
    counts = Counter(states[fewer].tolist())
    if len(counts) >= MANY_NUMBERS:
        return [
            f"the {len(states):,} hidden variables have {sizes_in_words(states)}, "
            f"{np.median(states):g} in the median; see diagnostics_.hidden_states"
        ]
    lines = []
    for k in sorted(counts, reverse=True):
        names = [model.tree.names[p + i] for i in np.flatnonzero(fewer & (states == k))]
        have = "has" if len(names) == 1 else "have"
        lines.append(
            f"{listed(names, SHOWN)} {have} {counted(k, 'state')} of {most}: the data do not "
            "tell more apart there"
        )
    return lines
