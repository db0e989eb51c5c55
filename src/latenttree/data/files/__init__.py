"""Files, one module a format: text, .csv, docword, FASTA, .npy and .npz, Parquet.

In: a path. Out: cells, arrays, matrices or frames, checked against what the file declares before
anything is allocated; `reader.read_table` makes tables of them. Whatever is wrong is a `DataError`
that names the file (`boundary.reading`). `sizes.py` estimates memory before a file is read.
Read `formats.py` first: it lists the formats, and the steps to add one.
"""
