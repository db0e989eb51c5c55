"""The oracle, which the package has: `latenttree.bench.oracle`."""

from latenttree.bench.oracle import oracle

__all__ = ["oracle"]
