"""What runs the computation: passes over chunks of samples, threads, kernels, memory, progress.

Results are the same to the last bit for any number of threads: work is cut into *fixed* pieces
(ranges of variables, tiles of a matrix, blocks of `BLOCK` samples by absolute position) that depend
on the data alone; each piece is summed by one thread in the order of the samples, and BLAS runs
single-threaded inside a piece. Read `passes.py` first, then `threads.py` and `kernels.py`.
"""

from latenttree.engine.passes import (
    THREADS,
    Engine,
    Gathered,
    Pass,
    Source,
    Summed,
    Threads,
    merged,
)
from latenttree.engine.progress import Progress
from latenttree.engine.threads import BLOCK, blocks, parallel, resolve_jobs, single_threaded_blas

__all__ = [
    "BLOCK",
    "THREADS",
    "Engine",
    "Gathered",
    "Pass",
    "Progress",
    "Source",
    "Summed",
    "Threads",
    "blocks",
    "merged",
    "parallel",
    "resolve_jobs",
    "single_threaded_blas",
]
