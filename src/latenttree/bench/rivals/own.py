"""Baselines of our own: trees from distances, and CLRG-EM with restarts."""

from __future__ import annotations

from dataclasses import dataclass

from latenttree.baselines import BASELINES, clrg_em
from latenttree.bench.rivals import Answer, Task
from latenttree.data import Table


@dataclass(frozen=True)
class FromDistances:
    """A structure learner of `latenttree.baselines`."""

    name: str
    method: str

    def available(self) -> bool:
        return True

    def fit(self, task: Task) -> Answer:
        learn = BASELINES[self.method]
        return Answer(tree=learn(task.distances(), task.table.n_samples, task.table.names))


@dataclass(frozen=True)
class ClrgEm:
    """The tree of CLRG, parameters by EM from random starts, the best of them."""

    name: str = "CLRG-EM"
    n_restarts: int = 20

    def available(self) -> bool:
        return True

    def fit(self, task: Task) -> Answer:
        from latenttree.inference import Evidence, log_likelihood
        from latenttree.samples import codes_of

        found = clrg_em(
            task.table,
            task.n_states,
            n_restarts=self.n_restarts,
            random_state=task.seed,
            n_jobs=task.n_jobs,
        )

        def of(table: Table) -> float:
            evidence = Evidence(codes_of(table, 0, table.n_samples))
            return float(log_likelihood(found.model, evidence, task.n_jobs).sum())

        more = {"log_likelihood_of_training": found.log_likelihood, "n_restarts": self.n_restarts}
        return Answer(found.model.tree, None, of, found.model.n_parameters, more)


RIVALS = (
    FromDistances("Chow-Liu", "chow_liu"),
    FromDistances("neighbour joining", "neighbor_joining"),
    FromDistances("recursive grouping", "recursive_grouping"),
    FromDistances("CLRG", "clrg"),
    FromDistances("CLNJ", "clnj"),
    ClrgEm(),
)
