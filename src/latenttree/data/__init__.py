"""Data in: named variables over samples, whatever the input."""

from latenttree.data.blocks import one_hot_codes
from latenttree.data.checks import check_identifiers, check_n_states, free_dimensions
from latenttree.data.encode import as_table
from latenttree.data.events import Events, read_events
from latenttree.data.families import Family
from latenttree.data.fasta import read_fasta
from latenttree.data.readers import read_table
from latenttree.data.schema import Schema
from latenttree.data.table import CODED, FAMILIES, Table, Values
from latenttree.data.weights import check_weights
from latenttree.errors import DataError

__all__ = [
    "CODED",
    "FAMILIES",
    "DataError",
    "Events",
    "Family",
    "Schema",
    "Table",
    "Values",
    "as_table",
    "check_identifiers",
    "check_n_states",
    "check_weights",
    "free_dimensions",
    "one_hot_codes",
    "read_events",
    "read_fasta",
    "read_table",
]
