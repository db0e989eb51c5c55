"""Tables of a fitted model, with the labels of its data: groups of variables, edges, conditional
distributions, risks, items of a scale, covariances, intervals.

In come a model, its schema and, where a table needs samples, data; out go DataFrames of pandas or
polars. Read `mixin.py` first: its methods are those of the estimator.
"""

from latenttree.tables.mixin import TableMixin

__all__ = ["TableMixin"]
