"""Entries from Python to functions that only kernels can call."""

from __future__ import annotations

from typing import Any

from latenttree.engine.kernels import kernel


def entry(subroutine: Any) -> Any:
    """A subroutine compiled as a kernel."""
    return kernel(subroutine.py_func, cache=False)
