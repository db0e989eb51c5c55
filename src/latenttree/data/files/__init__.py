"""Files, one module a format: .csv, docword, FASTA, .npy and .npz, Parquet.

In: a path. Out: batches of texts, arrays, matrices or frames, checked against what the file
declares before anything is allocated; `reader.read_table` makes tables of them. Whatever is wrong
is a `DataError` that names the file (`boundary.reading`). `sizes.py` estimates memory before a
file is read. Read `formats.py` first: it lists the formats, and the steps to add one.

Why pyarrow reads: it streams a 1 GB .csv to codes and exact quantiles in 20 s where DuckDB takes
111 s and Polars 54 s, and a .parquet in 9 s (18, 15), within 0.6 GiB (0.7, 1.2); its batches hold
distinct texts already; it guesses no types when told; it keeps ordered categories of Parquet; and
it is what pandas and Polars hand over. Measured by `benchmarks/data_libraries.py FOLDER --rows
6000000`, one run each beside other work.

Why DuckDB does not sort: in trials with sorted pairs and exact quantiles it was slower than
`streaming/pairs.py` and `streaming/quantiles.py`, and took more memory than it was told to. It
reads events in random order faster, as the same command prints; but samples in order of appearance,
missing texts, time spans and maps would still be ours.
"""
