"""A short run of `make fuzz`: damaged files of every format."""

from __future__ import annotations

import pytest
from tests.fuzz.fuzz_files import failures


@pytest.mark.slow
def test_damaged_files_are_read_or_refused_by_name() -> None:
    assert not failures(cases=300, seed=7, n_workers=1, kept=None)
