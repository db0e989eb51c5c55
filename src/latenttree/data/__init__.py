"""Data in: named variables over samples, whatever the input."""

from latenttree.data.blocks import one_hot_codes
from latenttree.data.checks import check_identifiers
from latenttree.data.encode import as_table, check_n_states
from latenttree.data.readers import read_table
from latenttree.data.schema import Schema
from latenttree.data.table import Table
from latenttree.errors import DataError

__all__ = [
    "DataError",
    "Schema",
    "Table",
    "as_table",
    "check_identifiers",
    "check_n_states",
    "one_hot_codes",
    "read_table",
]
