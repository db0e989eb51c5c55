"""Benchmarks: every table and figure that the documentation shows, and rivals beside them.

    python -m benchmarks                 # the tables, what each shows, how long it takes
    python -m benchmarks synthetic nips  # measure two of them

Read `README.md` first, then `registry.py`: a table is one file in `tables/`.
"""
