"""Rows that come in parts, to the same `Table` as all at once; it may lie in mapped files.

In: chunks of a file or a mapped array (`sources.py`), and a `ReadPlan` (memory limit, scratch
folder, options). Out: a `Table` (`assemble.streamed_table`) or a CSR matrix of ones
(`pairs.Pairs.matrix`). `reader`, `inputs` and `events` start it; `table`, `row_access`, `row_keys`
and a few passes only call `scratch.about_to_read`. Read `assemble.py` first.
"""
