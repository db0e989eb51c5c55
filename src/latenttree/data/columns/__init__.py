"""Columns and blocks in memory to variables of a family, and variables to a `Table`.

In: the columns of a container. Out: a `Variable` for each, and the table of all of them.
`builder.py` goes from a container to a table; read it first. `vectors.py` takes single columns
apart, `families.py` chooses the family; `vector_variables.py` (one value a sample) and
`block_variables.py` (a vector a sample) build the variables; `bins.py` has quantile bins and normal
scores; `codes.py` packs codes; `groups.py` are groups of matrix columns.
"""
