"""Leading eigenvectors against a dense eigendecomposition."""

import numpy as np
import pytest

from latenttree.moments.krylov import leading_eigenvectors


def operator(size: int, values: list[float], seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    q, _ = np.linalg.qr(rng.normal(size=(size, len(values))))
    return (q * values) @ q.T


def found(matrix: np.ndarray, width: int, n_converged: int, n_kept: int) -> tuple:
    start = np.random.default_rng(1).choice([-1, 1], (len(matrix), width)).astype(np.float32)
    return leading_eigenvectors(
        lambda block: (matrix @ block).astype(np.float32), start, n_converged, n_kept, 1, 1e-3
    )


@pytest.mark.parametrize("seed", range(5))
def test_leading_values_and_vectors(seed: int) -> None:
    bulk = np.random.default_rng(seed).uniform(0, 1, 300)
    matrix = operator(400, [5.0, 3.0, 2.0, *bulk], seed)
    vectors, values = found(matrix, 5, 3, 4)
    np.testing.assert_allclose(values[:3], [5, 3, 2], rtol=1e-3)
    dense = np.linalg.eigh(matrix)[1][:, -3:]
    shares = np.linalg.norm(dense.T @ vectors[:, :3], axis=0)
    np.testing.assert_allclose(shares, 1.0, atol=5e-3)


@pytest.mark.parametrize(("size", "n_values"), [(6, 1), (12, 2), (200, 1), (200, 7), (9, 0)])
def test_an_operator_of_few_dimensions_is_exhausted_without_harm(size: int, n_values: int) -> None:
    matrix = operator(size, [float(n_values - i) for i in range(n_values)], 0)
    vectors, values = found(matrix, 3, max(1, min(n_values, 3)), 3)
    assert np.isfinite(vectors).all()
    expected = [*range(n_values, 0, -1), 0, 0, 0][:3]
    np.testing.assert_allclose(values[:3], expected, atol=1e-4)
