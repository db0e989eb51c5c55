"""Ours, and baselines of our own: trees from distances, and CLRG-EM with restarts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.rivals import Answer, Rival, Task, of_model
from latenttree.evaluation.baselines import BASELINES, clrg, random_em
from latenttree.model.tree_model import TreeModel

OURS = "latenttree"


class Ours(Rival):
    """`LatentTree` with nothing but the number of states."""

    name = OURS

    def fit(self, task: Task) -> Answer:
        """Learn as the class says."""
        from latenttree.estimator import LatentTree

        model = LatentTree(n_states=task.n_states, random_state=task.seed, n_jobs=task.n_jobs)
        model.fit(task.table)
        more = {"stages": dict(model.diagnostics_.stage_seconds), "n_iter": int(model.n_iter_)}
        found = model.model_
        assert isinstance(found, TreeModel)
        return of_model(found, more, task.n_jobs)


@dataclass(frozen=True)
class FromDistances(Rival):
    """A structure learner of `latenttree.evaluation.baselines`."""

    name: str
    method: str

    def fit(self, task: Task) -> Answer:
        """Learn as the class says."""
        learn = BASELINES[self.method]
        return Answer(tree=learn(task.distances(), task.table.n_samples, task.table.names))


@dataclass(frozen=True)
class ClrgEm(Rival):
    """The tree of CLRG, parameters by EM from random starts, the best of them by likelihood.

    As many starts as `n_restarts`, or as there is time for; one at least.
    """

    name: str = "CLRG-EM"
    n_restarts: int = 20

    def fit(self, task: Task) -> Answer:
        """Learn as the class says."""
        task.is_late()  # the clock starts
        tree = clrg(task.distances(), task.table.n_samples, task.table.names)
        done = 0

        def enough() -> bool:
            nonlocal done
            done += 1
            return task.is_late()

        best = random_em(
            tree,
            task.table,
            task.n_states,
            n_restarts=self.n_restarts,
            random_state=task.seed,
            n_jobs=task.n_jobs,
            enough=enough,
        )
        more: dict[str, Any] = {"log_likelihood_of_training": best.log_likelihood}
        more["n_restarts"] = done
        if done < self.n_restarts:
            more["stopped"] = f"{done} of {self.n_restarts} restarts"
        return of_model(best.model, more, task.n_jobs)


RIVALS = (
    Ours(),
    FromDistances("neighbour joining", "neighbor_joining"),
    FromDistances("recursive grouping", "recursive_grouping"),
    FromDistances("CLRG", "clrg"),
    FromDistances("CLNJ", "clnj"),
    ClrgEm(),
)
