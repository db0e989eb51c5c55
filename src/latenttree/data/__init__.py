"""Data in: named variables over samples, whatever the input."""

from latenttree.data.encode import as_table, check_n_states
from latenttree.data.table import Table

__all__ = ["Table", "as_table", "check_n_states"]
