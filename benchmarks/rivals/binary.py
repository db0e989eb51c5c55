"""Binary variables as a matrix of ones, for methods that know only such."""

from __future__ import annotations

from typing import Any

from scipy import sparse

from latenttree.data import Table


def is_binary(table: Table) -> bool:
    """Whether every variable has two categories."""
    return bool((table.dims == 2).all())


def ones(table: Table) -> Any:
    """CSR (n, p): the second category of each variable is 1."""
    if table.kind == "sparse_binary":
        return sparse.csr_array(table.rows(0, table.n_samples))
    return sparse.csr_array(table.chunk(0, table.n_samples).codes, dtype=float)
