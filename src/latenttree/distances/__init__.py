"""Table -> information distances between all pairs of variables, as similarities.

In: a `data.Table` and the number of states. Out: `stage.Measured`: signed similarities with their
standard errors, the minimum spanning tree, the directions of every variable. Matrices of all pairs
where they fit in memory, else pair by pair (`correlation_source`, `counted_pairs`). Read `stage.py`
first, then `estimate.py` and `similarity.py`.
"""
