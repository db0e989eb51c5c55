"""Data in: any accepted input becomes a `Table` of named variables over samples.

Comes in: a DataFrame, array, sparse matrix, blocks, or a path (`inputs.as_table`,
`reader.read_table`, `events.read_events`). Goes out: a `Table`, the only form that later stages
see, and a `Schema`, by which a fitted model reads new data. Read `table.py` first, then
`inputs.py`. `containers/` is where inputs are told apart, `columns/` decides what each column is,
`files/` knows the formats, `streaming/` handles what exceeds memory, `batches.py` stores those of
`partial_fit`, `schema/` reads new data and writes values back.
"""

from latenttree.data.checks import check_identifiers, check_n_states, free_dimensions
from latenttree.data.columns.blocks import one_hot_codes
from latenttree.data.columns.families import Family
from latenttree.data.events.read import Events, read_events
from latenttree.data.files.fasta import read_fasta
from latenttree.data.inputs import as_table
from latenttree.data.reader import read_table
from latenttree.data.schema.schema import Schema
from latenttree.data.table import Table
from latenttree.data.values import CODED, FAMILIES, Values
from latenttree.data.weights import check_weights
from latenttree.errors import DataError, DataWarning

__all__ = [
    "CODED",
    "FAMILIES",
    "DataError",
    "DataWarning",
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
