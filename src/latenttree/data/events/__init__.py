"""Tables with a row for each event (sample, code, perhaps a time) to binary variables.

In: a DataFrame, arrays or a file, and maps between codes. Out: `Events`, a sparse binary matrix
with names, samples, groups, and a report of what was left out. Read `read.py` first; `columns.py`
finds the columns, `maps.py` reads maps, `pairs.py` holds distinct pairs of sample and code.
"""

from latenttree.data.events.read import Events, read_events
from latenttree.data.events.report import NothingLeft

__all__ = ["Events", "NothingLeft", "read_events"]
