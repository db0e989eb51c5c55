"""Rounds of local edits: of the tree, of the states of its nodes, or of what an edit kind changes.

Regions are cut out with the messages into them. The messages do not depend on the region, so edits
are proposed and fitted from the messages alone, at a cost that does not depend on the size of the
tree. Compatible edits are made together, and kept only if the model as a whole gains. What changed
is examined again. An edit that a person asks for goes through `accept`, like one that was found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from latenttree.config import FitConfig
from latenttree.engine import parallel, single_threaded_blas
from latenttree.engine.memory import spare
from latenttree.model.likelihood import bic_score, total_log_likelihood
from latenttree.model.samples import Samples
from latenttree.model.tree_model import TreeModel
from latenttree.refinement.tree_em import run_em
from latenttree.search.regions import Region, RegionEvidence, gather_evidence, sends_message

Floats = NDArray[np.float64]
Criterion = Literal["likelihood", "bic"]

MESSAGE_BYTES = 1 << 29
"""Memory for the messages of one batch of regions."""


C = TypeVar("C")


class Edit(NamedTuple, Generic[C]):
    """A fitted change of a region, and the criterion gained with the rest of the model fixed."""

    region: Region
    gain: float
    change: C


Edits = Sequence[Edit[C]]
Propose = Callable[[Region, RegionEvidence, Edit[C] | None], Edit[C] | None]
"""The edit of a region, given the evidence on its branches, and what was proposed for it on fewer
samples; None where there is none."""


class Rules(NamedTuple):
    """How an edit kind is searched.

    Attributes
    ----------
    min_gain : what an edit must gain to be made.
    most_rounds : rounds of proposals and edits, at most.
    most_regions : regions that are examined in all, at most.
    screens : every how many samples edits are proposed from, one after the other; what does not
        gain on fewer samples is not looked at with more.
    emissions_change : whether edits fit the emissions of a region's neighbours anew. Their values
        are gathered then, and else their likelihoods, as messages.
    borders_change : whether edits change the distribution of the nodes next to a region, so that
        two edits may not share one.
    judged_refined : whether an edited model is judged after refinement alone; else as it is, then
        refined.
    refines_last : whether the model is refined when no more regions may be examined.
    persistent : whether the other edits are tried where none of them gains together with the best.
    """

    min_gain: float = 0.0
    most_rounds: int = 12
    most_regions: int = 1 << 62
    screens: Sequence[int] = (1,)
    emissions_change: bool = False
    borders_change: bool = True
    judged_refined: bool = False
    refines_last: bool = True
    persistent: bool = False


@dataclass(frozen=True)
class Judge:
    """What decides between models: likelihood or BIC of some samples.

    `max_steps` of EM refine a model. `marginals` are the frequencies of the categories of observed
    nodes, the distribution of pseudo-samples; the model's own by default."""

    samples: Samples
    criterion: Criterion
    config: FitConfig
    max_steps: int = 20
    marginals: Sequence[Floats] = ()

    def value(self, model: TreeModel) -> float:
        """Log-likelihood, or BIC as in `bic_score`, of the whole model: larger is better."""
        total = total_log_likelihood(model, self.samples, self.config.n_jobs)
        if self.criterion == "likelihood":
            return total
        return bic_score(model, total, self.samples.n_samples)

    def penalty(self, n_parameters: int) -> float:
        """`log(n) / 2` for each parameter by BIC, zero by likelihood."""
        if self.criterion == "likelihood":
            return 0.0
        return 0.5 * n_parameters * float(np.log(self.samples.n_samples))

    def refined(self, model: TreeModel) -> TreeModel:
        """The model after a few EM steps."""
        return run_em(
            model,
            self.samples,
            max_steps=self.max_steps,
            tolerance=self.config.tol,
            smoothing=self.config.smoothing,
            marginals=self.marginals,
            n_jobs=self.config.n_jobs,
        ).model


class EditKind(Protocol[C]):
    """One kind of edits: where to look, what to propose, and how to put it into the model."""

    @property
    def judge(self) -> Judge:
        """What decides between models."""

    @property
    def rules(self) -> Rules:
        """How this kind is searched."""

    def regions(self, model: TreeModel) -> Iterator[Region]:
        """The regions to look at, most promising first."""

    def proposer(self, model: TreeModel) -> Propose[C]:
        """What proposes and fits the best edit of a region of the model; called by threads."""

    def refits(self, edits: Edits[C]) -> Edits[C]:
        """Regions as they are, with parameters that were fitted on the way."""

    def applied(self, model: TreeModel, edits: Edits[C]) -> TreeModel:
        """The model with compatible edits made."""

    def revisited(
        self, before: TreeModel, after: TreeModel, made: Edits[C], waiting: Edits[C]
    ) -> Iterator[Region]:
        """The regions to look at after some edits were made and others, which gain, were not."""


class Accepted(NamedTuple, Generic[C]):
    """A model with some edits made, and its value."""

    model: TreeModel
    value: float
    edits: list[Edit[C]]


@dataclass(frozen=True, eq=False)
class SearchResult(Generic[C]):
    """The model that a search ended with.

    Attributes
    ----------
    values : the criterion before every round and at the end; never decreasing.
    proposed : all edits that were proposed, in order.
    """

    model: TreeModel
    values: list[float]
    proposed: list[Edit[C]]


def search_edits(model: TreeModel, kind: EditKind[C]) -> SearchResult[C]:
    """Hill climbing from `model` until no region that is examined has an edit that gains."""
    rules, judge = kind.rules, kind.judge
    values, proposed, left = [judge.value(model)], list[Edit[C]](), rules.most_regions
    regions = kind.regions(model)
    for _ in range(rules.most_rounds):
        examined = list(islice(regions, left))
        left -= len(examined)
        edits = propose(model, examined, kind)
        proposed += edits
        gaining = sorted((q for q in edits if q.gain > rules.min_gain), key=lambda q: -q.gain)
        found = accept(model, gaining, kind, values[-1], kind.refits(edits))
        while found is None and rules.persistent and gaining:
            gaining = gaining[1:]
            found = accept(model, gaining, kind, values[-1])
        if found is None:
            break
        if not rules.judged_refined and (left or rules.refines_last):
            found = _refined(found, judge)
        values.append(found.value)
        regions = kind.revisited(model, found.model, found.edits, gaining)
        model = found.model
    return SearchResult(model, values, proposed)


def _refined(found: Accepted[C], judge: Judge) -> Accepted[C]:
    """The refined model if its value is larger, else the model as it is."""
    new = judge.refined(found.model)
    value = judge.value(new)
    return found._replace(model=new, value=value) if value > found.value else found


def accept(
    model: TreeModel,
    edits: Edits[C],
    kind: EditKind[C],
    value: float,
    refits: Edits[C] = (),
) -> Accepted[C] | None:
    """The model with edits made that are compatible, if its value exceeds `value`; else None.

    First all of them are made together, in their order, and `refits` where these touch none. If the
    whole model does not gain, only the first half of the edits is made, then a quarter, and so on.
    A `value` of -inf takes them in any case."""
    least = value + 1e-9 * abs(value) if np.isfinite(value) else value
    chosen = compatible(model, edits, kind.rules.borders_change)
    made = compatible(model, [*chosen, *refits], kind.rules.borders_change)
    while chosen:
        for new in _forms(kind.applied(model, made), kind):
            if (reached := kind.judge.value(new)) > least:
                return Accepted(new, reached, chosen)
        chosen = made = chosen[: len(chosen) // 2]
    return None


def _forms(model: TreeModel, kind: EditKind[C]) -> Iterator[TreeModel]:
    """An edited model as it is, unless it is judged refined alone; then refined."""
    if not kind.rules.judged_refined:
        yield model
    yield kind.judge.refined(model)


def compatible(model: TreeModel, edits: Iterable[Edit[C]], borders_change: bool) -> list[Edit[C]]:
    """Edits no two of which change a hidden node inside or next to the region of the other;
    greedily in order."""
    touched: set[int] = set()
    chosen = []
    for edit in edits:
        inside = set(edit.region.inside)
        around = inside | {u for _, u in edit.region.branches if u >= model.tree.n_observed}
        if touched.isdisjoint(around if borders_change else inside):
            touched |= around
            chosen.append(edit)
    return chosen


# ---- proposals ------------------------------------------------------------------------


def propose(model: TreeModel, regions: Sequence[Region], kind: EditKind[C]) -> list[Edit[C]]:
    """The edits that `kind` proposes for some regions, given the messages of the model."""
    if not regions:
        return []
    work = kind.proposer(model)
    known: dict[Region, Edit[C] | None] = dict.fromkeys(regions)
    for every in kind.rules.screens:
        known = dict(_screened(model, known, work, every, kind))
    return [edit for edit in known.values() if edit is not None]


def _screened(
    model: TreeModel,
    known: dict[Region, Edit[C] | None],
    work: Propose[C],
    every: int,
    kind: EditKind[C],
) -> Iterator[tuple[Region, Edit[C]]]:
    """The edits of some regions by every `every`-th sample, in batches of bounded memory."""
    samples, n_jobs = kind.judge.samples, kind.judge.config.n_jobs
    width = int(model.dims[model.tree.n_observed :].max(initial=1))
    room = max(1, spare(MESSAGE_BYTES) * every // (4 * width * max(len(samples.table), 1)))
    for batch in _batches(model, list(known), room):
        evidence = gather_evidence(
            model, batch, samples, kind.rules.emissions_change, every, n_jobs
        )

        def fit(
            start: int,
            stop: int,
            batch: list[Region] = batch,
            evidence: RegionEvidence = evidence,
        ) -> list[Edit[C] | None]:
            return [work(region, evidence, known[region]) for region in batch[start:stop]]

        with single_threaded_blas():
            found = [edit for part in parallel(fit, len(batch), n_jobs, 1) for edit in part]
        for region, edit in zip(batch, found, strict=True):
            if edit is not None:
                yield region, edit


def _batches(model: TreeModel, regions: list[Region], room: int) -> Iterator[list[Region]]:
    """Regions in batches that need at most `room` messages; at least one region each."""
    batch: list[Region] = []
    edges: set[tuple[int, int]] = set()
    for region in regions:
        needed = {(u, v) for v, u in region.branches if sends_message(model, u)}
        if batch and len(edges) + len(needed - edges) > room:
            yield batch
            batch, edges = [], set()
        batch.append(region)
        edges |= needed
    if batch:
        yield batch
