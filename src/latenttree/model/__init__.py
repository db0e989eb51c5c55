"""Models: a tree with every conditional distribution, and exact inference on it.

`tree_model` has hidden variables with states, `gaussian` real hidden vectors; `emissions` are the
families of observed variables, `inference` is belief propagation, `samples` reads a table in
chunks. Read `tree_model.py` first.
"""
