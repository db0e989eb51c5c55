"""Data in: named variables over samples, whatever the input."""

from latenttree.data.checks import check_identifiers
from latenttree.data.encode import as_table, check_n_states
from latenttree.data.readers import read_table
from latenttree.data.table import Table
from latenttree.errors import DataError

__all__ = ["DataError", "Table", "as_table", "check_identifiers", "check_n_states", "read_table"]
