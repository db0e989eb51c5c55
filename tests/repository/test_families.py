"""The families of variables are the same wherever they are listed."""

from __future__ import annotations

from latenttree.data.columns.families import ALIASES, GAUSSIAN, NUMBERS
from latenttree.data.values import CODED, FAMILIES, TABLE_FAMILIES, TRAITS
from latenttree.io.emission_arrays import ARRAYS
from latenttree.model.emissions.choose import CLASSES


def test_every_family_beside_codes_has_a_class_and_arrays_in_files() -> None:
    assert set(FAMILIES) - set(CODED) == set(CLASSES) == set(ARRAYS)


def test_other_names_lead_to_families() -> None:
    assert set(ALIASES.values()) <= set(FAMILIES)
    assert not set(ALIASES) & set(FAMILIES)


def test_traits_exclude_each_other() -> None:
    for name, family in TRAITS.items():
        assert family.coded + family.gaussian + family.counts <= 1, name
        assert family.scalar or family.block, name


def test_lists_by_traits() -> None:
    assert set(FAMILIES) - set(TABLE_FAMILIES) == {"binary"}
    assert CODED == ("categorical", "ordinal", "binary")
    assert set(NUMBERS) == {*GAUSSIAN, "poisson"}
    assert set(GAUSSIAN) == {name for name in FAMILIES if name.startswith("gaussian")}
