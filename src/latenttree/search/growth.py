"""More states than moments determine: shapes and numbers of states, judged by held-out samples.

A hidden node of the real world is rarely in one of two states. With more states the likelihood of
samples that were not learned from rises, until it falls; and with more states another shape of the
tree may be the better one. Candidates are learned from nine tenths of the samples and compared on
the tenth that is held out, sample by sample; the one that is chosen goes on with all samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.config import FitConfig
from latenttree.data import Table
from latenttree.distances.stage import States
from latenttree.model.held_out import (
    FEW_SAMPLES,
    HELD_OUT,
    clearly_better,
    sample_scores,
    sample_weights,
    split_samples,
)
from latenttree.model.independence import independent_across
from latenttree.model.likelihood import total_log_likelihood
from latenttree.model.samples import Samples, marginals, model_dims
from latenttree.model.signs import ordered_variables
from latenttree.model.state_bounds import most_states
from latenttree.model.tree_model import TreeModel, normalised
from latenttree.parameters.cluster_start import cluster_start, common_start
from latenttree.parameters.moment_start import view_basis
from latenttree.refinement.evidence import canonical_states, effective_samples
from latenttree.refinement.fitted import Fitted
from latenttree.refinement.minibatch_em import (
    BATCH,
    MOST_OF_VALUES,
    BatchFit,
    averaged_em,
    batch_em,
    rows_of_a_pass,
)
from latenttree.search.stage import Learned, tree_model
from latenttree.structure.copies import hidden_copies
from latenttree.structure.learn import Structure
from latenttree.tree import Tree

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FIRST, LESS, MORE = 16, 4, 64
"""States that "auto" tries: `FIRST`, then `MORE` where that gains and `LESS` where it does not."""

TRIAL_PASSES = 8
"""First passes of a candidate, after which shapes are compared."""

BASE_PASSES = 3
"""Passes of the model of few states without the held-out samples, before it is compared."""

MOST_PASSES = 40
"""Further passes of a candidate, at most."""

LAST_PASSES = 2
"""Passes with all samples at the end, which average."""

CLEAR, SHAPE_CLEAR = 2.0, 1.0
"""Standard errors of the mean difference by which more states, and another tree at the same number
of states, must be better on held-out samples. Both trees are as rich, so that for them the usual
one-standard-error rule decides."""

MAX_WORK = 2e10
"""Multiply-adds of a pass with which "auto" tries a number of states: a second or a few."""

PASSES_WORK = 1e11
"""Multiply-adds of the further passes of a candidate."""

VALUES_WORK = 3e6
"""Multiply-adds in whose time the values of a column are gone through in a batch."""

START_WORK, MOST_STARTS = 2.5e9, 6
"""Multiply-adds of one pass of all seeds of the best shape, and seeds at most."""

MADE_UP = 0.5
"""Trials that are further behind the best one than this share of what more passes gained for it
are given up."""

MANY_PER_STATE, FEWEST_PER_STATE = 600, 50
"""With more samples for each state, common clusters are no better a start than near ones; with
fewer, "auto" does not try as many states."""

SHARING, MORE_SHARING, NO_SHARING = 4, 16, 1
"""States that share the pseudo-samples of one; with few samples fewer and more pseudo-samples are
tried too."""

UNUSED = 0.5
"""States of fewer expected samples are left out."""


Clustering = Callable[[Tree, Samples, Ints, NDArray[np.floating], int, int], TreeModel]
"""A first model of a tree with many states."""


class Start(NamedTuple):
    """How a candidate begins, and how many states share the pseudo-samples of one."""

    clustering: Clustering
    sharing: int
    seed: int


class Split(NamedTuple):
    """Samples to learn from, held-out samples, and the marginals of the observed nodes."""

    train: Samples
    held_out: Samples
    marginals: Sequence[Floats]


@dataclass(frozen=True, eq=False)
class Candidate:
    """A structure with a model of it, and the log-likelihood of every held-out sample.

    `gained`: what the passes after the first ones gained, of all held-out samples; `rivals`: shapes
    that are not clearly worse with as many states."""

    structure: Structure
    fit: BatchFit
    scores: Floats
    start: Start | None = None
    gained: float = 0.0
    rivals: tuple[Structure, ...] = ()


def grow(
    learned: Learned,
    rivals: Sequence[Structure],
    table: Table,
    states: States,
    basis: NDArray[np.floating] | None,
    config: FitConfig,
) -> Learned:
    """The structure and the model with more states, where `states.goal` asks for them and, with
    "auto", held-out samples support them; else as they are.

    `rivals` are other shapes of the tree. All have their observed nodes as leaves, but for a tree
    that is given, which stays."""
    if not grows(table, states, config) or not learned.structure.tree.n_hidden:
        return learned
    structure, model = learned.structure, tree_model(learned.fitted)
    with config.progress.stage("more states"):
        shapes = [structure if structure.shape == "given" else hidden_copies(structure), *rivals]
        growth = _Growth.of(table, states, basis, config)
        base = Candidate(structure, *growth.base(model))
        if states.goal == "auto":
            found = growth.supported(base, shapes)
            if found is None:
                return replace(learned, tried=growth.account(base))
        else:
            assert isinstance(states.goal, int)
            found = growth.asked(shapes, states.goal, base)
        return Learned(found.structure, growth.finished(found), growth.account(base))


def grow_shapes(
    shapes: Sequence[Structure],
    n_states: int,
    table: Table,
    states: States,
    basis: NDArray[np.floating] | None,
    config: FitConfig,
) -> Learned:
    """The best of some shapes, whose observed nodes are leaves, with `n_states` at every hidden
    node."""
    growth = _Growth.of(table, states, basis, config)
    found = growth.asked(shapes, n_states)
    return Learned(found.structure, growth.finished(found))


def grows(table: Table, states: States, config: FitConfig) -> bool:
    """Whether more states than those of the first model are to be tried."""
    if states.goal is None or config.refine is None or config.gaussian or table.n_vars < 3:
        return False
    return states.goal != "auto" or table.total_weight >= FEW_SAMPLES


@dataclass(frozen=True, eq=False)
class _Growth:
    """What all candidates share."""

    table: Table
    split: Split
    dims: Ints
    basis: NDArray[np.floating]
    config: FitConfig
    tried: dict[tuple[int, str], Floats] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        table: Table,
        states: States,
        basis: NDArray[np.floating] | None,
        config: FitConfig,
    ) -> _Growth:
        share = config.validation_fraction or HELD_OUT
        train, held_out = split_samples(table, replace(config, validation_fraction=share))
        assert held_out is not None
        used = view_basis(table, states.n_directions + 1, basis, config)
        dims = np.array(model_dims(table))
        if table.values is not None:
            dims[list(table.values.arrays)] = 0
        return cls(table, Split(train, held_out, marginals(table)), dims, used, config)

    # ---- candidates -------------------------------------------------------------------

    def base(self, model: TreeModel) -> tuple[BatchFit, Floats]:
        """The model of few states, after passes without the held-out samples."""
        fit = BatchFit(self._averaged(model, self.split.train, BASE_PASSES, SHARING))
        return fit, self._scores(fit.model)

    def started(self, structure: Structure, n_states: int, start: Start) -> Candidate:
        """The candidate of a structure after few passes, with up to `n_states` at every hidden
        node."""
        sizes = most_states(structure.tree, self.dims, n_states)
        tree, n_jobs = structure.tree, self.config.n_jobs
        model = start.clustering(tree, self.split.train, sizes, self.basis, start.seed, n_jobs)
        fit = self._passes(model, TRIAL_PASSES, start)
        return self._noted(Candidate(structure, fit, self._scores(fit.model), start))

    def continued(self, trial: Candidate, done: int = 0) -> Candidate:
        """The candidate after more passes, of which some were `done` before, or as it is where
        these gain nothing."""
        left = self._most_passes(trial.structure, hidden_states(trial.fit.model)) - done
        return self._after(trial, left) if left > 0 else trial

    def _after(self, trial: Candidate, passes: int) -> Candidate:
        assert trial.start is not None
        fit = self._passes(trial.fit.model, passes, trial.start, trial.fit)
        more = Candidate(trial.structure, fit, self._scores(fit.model), trial.start)
        gained = max(self._score(more) - self._score(trial), 0.0)
        return self._noted(replace(self._better(trial, more), gained=gained))

    def _noted(self, candidate: Candidate) -> Candidate:
        """The candidate; scores of the best one of each number of states and shape are kept for
        `account`."""
        key, w = (hidden_states(candidate.fit.model), candidate.structure.shape), self._weights()
        if key not in self.tried or candidate.scores @ w >= self.tried[key] @ w:
            self.tried[key] = candidate.scores
        return candidate

    def account(self, base: Candidate) -> tuple[dict[str, Any], ...]:
        """What was compared: for each number of states and shape the mean log-likelihood of a
        held-out sample, by how much that is above the model of few states, and the standard error
        of the difference."""
        first = (hidden_states(base.fit.model), base.structure.shape), base.scores
        w = self._weights() / self._weights().sum()
        n = float(self._weights().sum())
        rows = []
        for (n_states, shape), scores in [first, *sorted(self.tried.items())]:
            gain = float((scores - base.scores) @ w)
            variance = float((scores - base.scores - gain) ** 2 @ w)
            rows.append(
                {
                    "n_states": n_states,
                    "shape": shape,
                    "held_out": float(scores @ w),
                    "gain": gain,
                    "standard_error": float(np.sqrt(variance / n)),
                }
            )
        return tuple(rows)

    def full(self, structure: Structure, n_states: int, start: Start) -> Candidate:
        """The candidate of a structure after all passes."""
        return self.continued(self.started(structure, n_states, start))

    def _passes(
        self, model: TreeModel, most: int, start: Start, before: BatchFit | None = None
    ) -> BatchFit:
        return batch_em(
            model,
            self.split.train,
            self.split.held_out,
            max_passes=most,
            smoothing=self.config.smoothing,
            sharing=start.sharing,
            marginals=self.split.marginals,
            seed=start.seed,
            n_jobs=self.config.n_jobs,
            before=before,
        )

    def _averaged(self, model: TreeModel, samples: Samples, passes: int, sharing: int) -> TreeModel:
        return averaged_em(
            model,
            samples,
            passes=passes,
            smoothing=self.config.smoothing,
            sharing=sharing,
            marginals=self.split.marginals,
            seed=self.config.seed,
            n_jobs=self.config.n_jobs,
        )

    def _scores(self, model: TreeModel) -> Floats:
        return sample_scores(model, self.split.held_out)

    # ---- choices ----------------------------------------------------------------------

    def shaped(
        self, first: Sequence[Candidate], shapes: Sequence[Structure], n_states: int
    ) -> Candidate:
        """The best of some shapes and starts at a number of states; `first` are trials of the first
        shape. All shapes go on from the start of the best trial, unless they are clearly further
        behind than more passes make up for. The first shape stays where no other is better by
        `SHAPE_CLEAR` standard errors. Other seeds are tried with the best one."""
        trials = self._best_trials(first, shapes, n_states)
        order = sorted(trials, key=self._score, reverse=True)
        done = [self.continued(order[0])]
        bar = self._score(order[0]) - MADE_UP * done[0].gained
        done += [self.continued(trial) for trial in order[1:] if self._score(trial) >= bar]
        best = self._best_shape(sorted(done, key=lambda one: one.structure is not shapes[0]))
        others = [one for one in done if one is not best and not self._clearly_better(best, one)]
        own = next(trial for trial in trials if trial.structure is best.structure)
        found = self._better(best, self._other_seeds(own))
        return replace(found, rivals=tuple(one.structure for one in others))

    def _other_seeds(self, trial: Candidate) -> Candidate:
        """The best of trials from other seeds after all passes, or the trial if none is better."""
        assert trial.start is not None
        structure, n_states = trial.structure, hidden_states(trial.fit.model)
        n_starts = min(round(START_WORK / self._work(structure, n_states)), MOST_STARTS)
        best = trial
        for seed in range(self.config.seed + 1, self.config.seed + n_starts):
            start = trial.start._replace(seed=seed)
            best = self._better(best, self.started(structure, n_states, start))
        return best if best is trial else self.continued(best)

    def _best_trials(
        self, first: Sequence[Candidate], shapes: Sequence[Structure], n_states: int
    ) -> list[Candidate]:
        """Trials of all shapes from the start of the best one. With a start of their own, shapes
        would differ by the noise of the starts too."""
        known = {trial.start: trial for trial in first}
        found = []
        for start in self._first_starts(n_states):
            own = known.get(start) or self.started(shapes[0], n_states, start)
            found.append([own, *(self.started(shape, n_states, start) for shape in shapes[1:])])
        return max(found, key=lambda trials: max(map(self._score, trials)))

    def _best_shape(self, found: Sequence[Candidate]) -> Candidate:
        """The first of some shapes, or one that is clearly better."""
        best = found[0]
        for other in found[1:]:
            better = clearly_better(other.scores, best.scores, self._weights(), SHAPE_CLEAR)
            best = other if better else best
        return best

    def with_more(self, found: Candidate, n_states: int) -> Candidate:
        """The best of the shape that was `found` with few states and its rivals, with more states,
        from the start that was found. Trials that are not clearly further behind than more passes
        make up for get as many passes again."""
        assert found.start is not None
        tried = [found.structure, *found.rivals]
        trials = [self.started(shape, n_states, found.start) for shape in tried]
        bar = max(map(self._score, trials)) - MADE_UP * found.gained
        going_on = [trial for trial in trials if self._score(trial) >= bar]
        if len(going_on) == 1:
            return self.continued(going_on[0])
        best = max((self._after(trial, TRIAL_PASSES) for trial in going_on), key=self._score)
        return self.continued(best, TRIAL_PASSES)

    def _first_trials(self, shape: Structure, n_states: int) -> list[Candidate]:
        """Trials of a shape from all first starts."""
        return [self.started(shape, n_states, start) for start in self._first_starts(n_states)]

    def _first_starts(self, n_states: int) -> list[Start]:
        """Starts that are tried with every shape."""
        return [Start(*kind, self.config.seed) for kind in self._kinds(n_states)]

    def _kinds(self, n_states: int) -> list[tuple[Clustering, int]]:
        """Clusters to start from, and states that share the pseudo-samples of one."""
        near = (cluster_start, SHARING)
        if not self._few_samples(n_states):
            return [near]
        return [near, (common_start, MORE_SHARING), (common_start, NO_SHARING)]

    def _few_samples(self, n_states: int) -> bool:
        return self._samples_per_state(n_states) < MANY_PER_STATE

    def _samples_per_state(self, n_states: int) -> float:
        return self.split.train.n_samples / n_states

    def asked(
        self, shapes: Sequence[Structure], n_states: int, base: Candidate | None = None
    ) -> Candidate:
        """The model with a number of states that was asked for. Where more states than those of
        `base` gain nothing, its tree describes the data, and no other shape is tried."""
        first = min(n_states, FIRST)
        trials = self._first_trials(shapes[0], first)
        if base is not None and not any(self._clearly_better(one, base) for one in trials):
            shapes = shapes[:1]
        found = self.shaped(trials, shapes, first)
        return found if n_states <= FIRST else self.with_more(found, n_states)

    def supported(self, base: Candidate, shapes: Sequence[Structure]) -> Candidate | None:
        """The model with as many states as held-out samples support; None: those of `base`."""
        first = min(FIRST, self._affordable(shapes))
        if first < LESS:
            return None
        trials = self._first_trials(shapes[0], first)
        if max([base, *trials], key=self._score) is base:
            few = max(self._first_trials(shapes[0], LESS), key=self._score)
            few = few if self._better(base, few) is base else self.continued(few)
            return few if self._clearly_better(few, base) else None
        best = self.shaped(trials, shapes, first)
        if not self._clearly_better(best, base):
            return None
        enough = self._samples_per_state(MORE) >= FEWEST_PER_STATE
        if enough and self._work(best.structure, MORE) <= MAX_WORK:
            more = self.with_more(best, MORE)
            best = more if self._clearly_better(more, best) else best
        return best

    def _most_passes(self, structure: Structure, n_states: int) -> int:
        """Further passes of a candidate: `MOST_PASSES`, or as many as `PASSES_WORK` allows."""
        affordable = round(PASSES_WORK / self._work(structure, n_states))
        return min(self.config.max_iter, MOST_PASSES, max(affordable, TRIAL_PASSES))

    def _better(self, one: Candidate, other: Candidate) -> Candidate:
        return max(one, other, key=self._score)

    def _score(self, candidate: Candidate) -> float:
        """Log-likelihood of the held-out samples."""
        return float(candidate.scores @ self._weights())

    def _clearly_better(self, one: Candidate, other: Candidate) -> bool:
        """Whether the mean difference on held-out samples is `CLEAR` standard errors above 0."""
        return clearly_better(one.scores, other.scores, self._weights(), CLEAR)

    def _weights(self) -> Floats:
        return sample_weights(self.split.held_out)

    def _affordable(self, shapes: Sequence[Structure]) -> int:
        """The largest power of 2, at most `FIRST`, whose passes cost no more than `MAX_WORK`."""
        n_states = FIRST
        while n_states > 1 and self._work(shapes[0], n_states) > MAX_WORK:
            n_states //= 2
        return n_states

    def _work(self, structure: Structure, n_states: int) -> float:
        """Multiply-adds of a pass: three for each cell of each CPT and sample, and what a column
        with values costs in every batch."""
        tree = structure.tree
        sizes = np.concatenate([self.dims, most_states(tree, self.dims, n_states)])
        a, b = tree.edges.T
        n, n_values = rows_of_a_pass(self.split.train), int((self.dims == 0).sum())
        products = 3.0 * n * float((np.maximum(sizes[a], 1) * sizes[b]).sum())
        return products + VALUES_WORK * n_values * min(n / BATCH, MOST_OF_VALUES)

    # ---- the end ----------------------------------------------------------------------

    def finished(self, found: Candidate) -> Fitted:
        """The model after passes over all samples, without unused states, in canonical order."""
        everything = Samples(self.table)
        sharing = SHARING if found.start is None else found.start.sharing
        averaged = self._averaged(found.fit.model, everything, LAST_PASSES, sharing)
        joins = np.flatnonzero(found.structure.support == 0)
        apart = independent_across(averaged, joins, self.table)
        used = without_unused_states(apart, everything.n_samples)
        model = canonical_states(used, ordered_variables(self.table.families, self.table.dims))
        n_jobs = self.config.n_jobs
        samples = effective_samples(model, everything, n_jobs)
        value = total_log_likelihood(model, everything, n_jobs)
        well, held_out = np.ones(model.tree.n_hidden), found.fit.held_out
        converged = found.fit.converged or len(held_out) < self.config.max_iter
        return Fitted(model, well, samples, [value], held_out, converged)


def hidden_states(model: TreeModel) -> int:
    """The most states of a hidden node."""
    return int(model.dims[model.tree.n_observed :].max())


def without_unused_states(model: TreeModel, n_samples: float) -> TreeModel:
    """The model without states of hidden nodes that fewer than `UNUSED` of the samples have, two
    states at least left at each."""
    p, kept = model.tree.n_observed, {}
    for v, share in enumerate(model.marginals[p:], start=p):
        largest = np.sort(np.argsort(-share, kind="stable")[:2])
        used = np.union1d(np.flatnonzero(share * n_samples >= UNUSED), largest)
        if len(used) < len(share):
            kept[v] = used
    if not kept:
        return model
    cpts = []
    for v, (cpt, u) in enumerate(zip(model.cpts, model.parents.tolist(), strict=True)):
        rows = kept.get(v, np.arange(len(cpt)))
        columns = kept.get(u, np.arange(cpt.shape[1]))
        cpts.append(normalised(cpt[np.ix_(rows, columns)]))
    emissions = {
        v: e.relabelled(kept[int(model.parents[v])]) if int(model.parents[v]) in kept else e
        for v, e in model.emissions.items()
    }
    return TreeModel(model.tree, model.root, tuple(cpts), emissions)
