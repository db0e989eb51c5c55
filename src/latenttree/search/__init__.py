"""Structure + model + samples -> edits of the tree and of the numbers of states, by likelihood.

In: a structure with doubtful edges and its refined model. Out: the structure and the model that
BIC prefers. Read `local_search.py` first, then `regions.py` and `node_states.py`.
"""
