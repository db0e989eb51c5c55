"""Tree + samples -> every conditional distribution, by moments.

In: a tree and a table. Out: `estimate.Parameters`: a model, and how well conditioned the moments
were at each hidden node. Read `estimate.py` first, then `views.py` and `decomposition.py`.
"""
