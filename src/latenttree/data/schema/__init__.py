"""How a fitted model reads new data, and writes values back in the container of its training data.

In: `X` and its `Table` (`Schema.of`); later new data. Out: `Rows` of codes and numbers
(`Schema.rows`), or values in the training container (`Schema.decode`). Read `schema.py` first;
`fields.py` is what a schema stores, `kinds.py` how each variable is read and written, `new_data.py`
reads inputs, `decode.py` writes them, `json_form.py` saves.
"""

from latenttree.data.schema.rows import Rows
from latenttree.data.schema.schema import Schema

__all__ = ["Rows", "Schema"]
