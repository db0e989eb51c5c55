"""Inputs larger than memory, read part by part to the same `Table`, which may lie in mapped files.

In: a path or a mapped array, and a `ReadPlan` (memory limit, scratch folder, options).
Out: a `Table` (`assemble.streamed_table`) or a CSR matrix of ones (`pairs.DiskPairs.matrix`).
Callers: `reader`, `inputs` and `events` start it; `table`, `row_access`, `row_keys` and a few
passes only call `scratch.about_to_read`. Nothing else depends on these modules, so a library that
reads, sorts and spills can replace them. Read `assemble.py` first.
"""
