"""Passes over the data: sums over fixed blocks of samples, on threads, the same for any number.

How the answer stays the same to the last bit: work is cut into *fixed* pieces (ranges of variables,
tiles of a matrix, blocks of `BLOCK` samples by absolute position) that depend on the data alone,
never on the number of threads or on how the samples are read; each piece is summed by one thread in
the order of the samples, and BLAS runs single-threaded inside a piece.
"""

from latenttree.engine.passes import BLOCK, blocks, parallel, resolve_jobs, single_threaded_blas
from latenttree.engine.progress import Progress

__all__ = ["BLOCK", "Progress", "blocks", "parallel", "resolve_jobs", "single_threaded_blas"]
