"""Columns and blocks in memory to variables of a family, and variables to a `Table`.

In: arrays, series, sparse matrices. Out: a `Variable` for each column or block, and the table of
all of them. `builder.py` has a method for each container; read it first. `families.py` chooses the
family; `vectors.py` (one value a sample) and `block_variables.py` (a vector a sample) build the
variables; `bins.py` has quantile bins and normal scores; `codes.py` packs codes.
"""
