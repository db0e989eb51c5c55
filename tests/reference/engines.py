"""A second engine, which shares nothing with the samples but chunks of them."""

from __future__ import annotations

import pickle
from typing import Any

from latenttree.engine import BLOCK, Pass, merged


class Elsewhere:
    """An engine that pickles the pass, runs it on chunks of 4,096 samples and merges the totals."""

    def run(self, pass_: Pass[Any], table: Any, n_jobs: int) -> Any:
        """The total."""
        source, pass_ = table.at_source(pass_)
        pass_ = pickle.loads(pickle.dumps(pass_))
        total = pass_.start()
        for start in range(0, source.n_samples, BLOCK):
            partial = pass_.start()
            pass_.add(partial, source.chunk(start, min(start + BLOCK, source.n_samples)), n_jobs)
            merged(pass_, total, partial)
        return total
