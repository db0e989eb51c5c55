"""Plans of memory: matrices where they fit, pairs on demand where not, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from tests.reference.binary import random_words, sparse_binary

from latenttree.data import as_table
from latenttree.distances.memory_plan import matrix_bytes, plan_memory
from latenttree.errors import DataError


def test_matrices_are_taken_where_they_fit() -> None:
    table = sparse_binary(random_words(0, n=50, p=40))
    p = table.n_vars
    assert matrix_bytes(table, 1) == 12 * p * p
    roomy = plan_memory(table, 2, "1TiB")
    assert roomy.mode == "correlations"
    assert roomy.estimated_peak == roomy.held + roomy.beside + 4 * p * p
    whole = plan_memory(table, 2, "1TiB", with_errors=True)
    assert whole.mode == "matrices"
    assert whole.estimated_peak == whole.held + whole.beside + 12 * p * p
    assert min(roomy.beside, whole.beside) > 0
    tight = plan_memory(table, 2, 1000)
    assert tight.mode == "on demand"
    assert tight.kept == 0
    assert "pairs counted when they are needed" in tight.sentence()


@pytest.mark.parametrize(
    ("X", "options", "why"),
    [
        (np.tile([[0, 1, 2], [2, 1, 0], [1, 0, 1]], (20, 1)), {}, "more than two categories"),
        (np.tile([[0, 1.0], [np.nan, 0], [1, 1]], (20, 2)), {"family": "categorical"}, "missing"),
        (
            sparse.csr_array(random_words(1, n=30, p=5)),
            {"sample_weight": np.full(30, 2.0), "drop_constant": True},
            "weighted samples",
        ),
    ],
)
def test_beyond_the_limit_what_cannot_be_counted_is_refused(
    X: Any, options: dict[str, Any], why: str
) -> None:
    table = as_table(X, **options)
    with pytest.raises(DataError, match=rf"variables need .*memory_limit is.*{why}.*raise memory"):
        plan_memory(table, 2, 1000)
