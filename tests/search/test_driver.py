"""The driver of local edits: compatible edits, and samples that are elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from tests.engine.test_seam import Elsewhere

import latenttree as lt
from latenttree.config import FitConfig
from latenttree.data import as_table
from latenttree.model.samples import Samples
from latenttree.model.tree_model import TreeModel
from latenttree.search.driver import Edit, Edits, Judge, Rules, accept, compatible
from latenttree.search.regions import Region, gather_evidence, region_around


def data_of(family: str) -> lt.datasets.LatentTreeData:
    return lt.datasets.make_latent_tree(
        12, 2, 3, shape="caterpillar", family=family, n_samples=10_000, random_state=0
    )


@pytest.mark.parametrize("emissions_change", [False, True])
@pytest.mark.parametrize("every", [1, 7])
@pytest.mark.parametrize("family", ["categorical", "mixed"])
def test_evidence_comes_from_samples_elsewhere(
    family: str, every: int, emissions_change: bool
) -> None:
    """In the order of the samples, whatever the chunks; likelihoods of all samples in one."""
    data = data_of(family)
    table = as_table(data.X, family=data.family)
    regions = [region_around(data.tree, (v,), 0) for v in range(12, data.tree.n_nodes)]
    here, there = (
        gather_evidence(data.model, regions, Samples(t), emissions_change, every)
        for t in (table, table.replace(engine=Elsewhere()))
    )
    assert (here.row, here.place) == (there.row, there.place)
    assert len(there.chunks) == (3 if emissions_change else 1)
    for i, axis in ((0, 1), (1, 0), (3, 0)):  # codes, messages, weights
        one, two = (np.concatenate([c[i] for c in e.chunks], axis) for e in (here, there))
        np.testing.assert_array_equal(one, two)
    assert here.chunks[0].weights.shape == (-(-10_000 // every),) or emissions_change


def edit_of(data: lt.datasets.LatentTreeData, v: int) -> Edit[int]:
    return Edit(region_around(data.tree, (v,), 0), 1.0, v)


def test_edits_of_regions_that_touch_are_not_made_together() -> None:
    """A chain of hidden nodes: regions of one node, which may share a border or not."""
    data = data_of("categorical")
    edits = [edit_of(data, v) for v in range(12, data.tree.n_nodes)]
    chain = [12, 13, 14, 15]
    assert [q.change for q in compatible(data.model, edits[:4], False)] == _apart(data, chain, 1)
    assert [q.change for q in compatible(data.model, edits[:4], True)] == _apart(data, chain, 2)


def _apart(data: lt.datasets.LatentTreeData, nodes: list[int], steps: int) -> list[int]:
    """Nodes more than `steps` apart, greedily in order."""
    chosen: list[int] = []
    for v in nodes:
        near = {v}
        for _ in range(steps):
            near |= {int(u) for w in near for u in data.tree.neighbors(w) if u >= 12}
        if near.isdisjoint(chosen):
            chosen.append(v)
    return chosen


@dataclass
class Counted:
    """Edits that are numbers; the value of a model is what `values` says for the edits made."""

    values: dict[tuple[int, ...], float]
    rules: Rules = field(default_factory=lambda: Rules(borders_change=False))
    made: tuple[int, ...] = ()

    @property
    def judge(self) -> Judge:
        kind = self

        class Fake(Judge):
            def value(self, model: TreeModel) -> float:
                return kind.values.get(kind.made, 0.0)

            def refined(self, model: TreeModel) -> TreeModel:
                return model

        return Fake(None, "likelihood", FitConfig())  # type: ignore[arg-type]

    def applied(self, model: TreeModel, edits: Edits[int]) -> TreeModel:
        self.made = tuple(q.change for q in edits)
        return model


def test_half_of_the_edits_is_made_where_all_do_not_gain() -> None:
    data = data_of("categorical")
    region = [Region((v,), ()) for v in range(12, 16)]
    edits = [Edit(r, 1.0, i) for i, r in enumerate(region)]
    for values, expected in (
        ({(0, 1, 2, 3): 2.0}, [0, 1, 2, 3]),
        ({(0, 1, 2, 3): 1.0, (0, 1): 1.5}, [0, 1]),
        ({(0,): 1.1}, [0]),
        ({(1,): 5.0}, None),
    ):
        found = accept(data.model, edits, Counted(values), 1.0)  # type: ignore[arg-type]
        assert (found and [q.change for q in found.edits]) == expected
    asked = accept(data.model, edits[:1], Counted({(0,): -9.0}), -np.inf)  # type: ignore[arg-type]
    assert asked is not None
    assert asked.value == -9.0
