"""Limits of memory, and what a process holds."""

from __future__ import annotations

import numpy as np
import pytest

from latenttree.engine.memory import (
    SHARE,
    available_memory,
    current_memory,
    give_back_freed,
    memory_bytes,
    memory_within,
    peak_memory,
    room_within,
    shown,
    spare,
    still_to_load,
)
from latenttree.errors import DataError


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (1000, 1000),
        (np.int64(1000), 1000),
        (1.5e3, 1500),
        ("1000", 1000),
        ("8GiB", 8 * 2**30),
        ("8 GB", 8 * 2**30),
        ("8g", 8 * 2**30),
        ("0.5 MiB", 2**19),
        ("1.5k", 1536),
        ("2TB", 2**41),
    ],
)
def test_limits_are_bytes(limit: object, expected: int) -> None:
    assert memory_bytes(limit) == expected


@pytest.mark.parametrize(
    "limit", ["", "much", "8X", "-1GB", 0, -5, True, [1], float("inf"), float("nan")]
)
def test_what_is_no_limit_is_told(limit: object) -> None:
    with pytest.raises(DataError, match="text like '8GiB'") as error:
        memory_bytes(limit)
    assert error.value.place.option == "memory_limit"
    assert error.value.value is limit


def test_by_default_a_share_of_what_is_free() -> None:
    free = available_memory()
    if free is None:
        pytest.skip("this system does not say")
    # other processes come and go between the two readings
    assert memory_bytes(None) == pytest.approx(SHARE * free, rel=0.5)


def test_a_large_array_is_seen() -> None:
    before = current_memory()
    if before is None:
        pytest.skip("this system does not say")
    array = np.ones(8_000_000)
    now, peak = current_memory(), peak_memory()
    assert now is not None
    assert peak is not None
    assert now - before > 0.9 * array.nbytes  # a page here or there may have gone
    assert peak >= now - 2**20


def test_bytes_for_people() -> None:
    assert [shown(x) for x in (10, 2048, 3 * 2**20, 2**33)] == [
        "10 bytes",
        "2.0 KiB",
        "3.0 MiB",
        "8.0 GiB",
    ]


def test_what_is_left_of_a_limit() -> None:
    held = current_memory()
    if held is None:
        pytest.skip("this system does not say")
    assert room_within(1) == 0
    # the process may grow between two readings
    assert 2**30 - 2**25 < room_within(held + still_to_load() + 2**30) <= 2**30 + 2**25


def test_working_arrays_are_smaller_within_a_limit() -> None:
    assert spare(2**40) == 2**40
    with memory_within(1):
        assert spare(2**40) == 2**22
        assert spare(2**20) == 2**20
    assert spare(2**40) == 2**40


def test_freed_memory_is_given_back() -> None:
    parts = [np.ones(10_000) for _ in range(2000)]
    before = current_memory()
    del parts
    give_back_freed()
    if before is not None:
        after = current_memory()
        assert after is not None
        assert after < before
