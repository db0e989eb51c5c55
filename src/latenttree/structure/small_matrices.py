"""Linear algebra of matrices of ten rows or so, for kernels.

A call into LAPACK costs more than the work itself at this size, and kernels that make none compile
in a fraction of the time.
"""

from __future__ import annotations

import numpy as np

from latenttree.engine.kernels import subroutine


@subroutine
def invert(a, out):  # type: ignore[no-untyped-def]
    """Inverse of a positive definite matrix `(m, m)` into `out`, by Cholesky; returns the log
    determinant, NaN if the matrix is not positive definite. O(m^3)."""
    m = a.shape[0]
    lower = np.zeros((m, m))
    log_det = 0.0
    for j in range(m):
        t = a[j, j]
        for k in range(j):
            t -= lower[j, k] ** 2
        if not t > 0:
            return np.nan
        lower[j, j] = np.sqrt(t)
        log_det += np.log(t)
        for i in range(j + 1, m):
            t = a[i, j]
            for k in range(j):
                t -= lower[i, k] * lower[j, k]
            lower[i, j] = t / lower[j, j]
    root = np.zeros((m, m))  # inverse of lower
    for j in range(m):
        root[j, j] = 1 / lower[j, j]
        for i in range(j + 1, m):
            t = 0.0
            for k in range(j, i):
                t -= lower[i, k] * root[k, j]
            root[i, j] = t / lower[i, i]
    for i in range(m):
        for j in range(i + 1):
            t = 0.0
            for k in range(i, m):
                t += root[k, i] * root[k, j]
            out[i, j] = t
            out[j, i] = t
    return log_det


@subroutine
def nonnegative_step(information, gradient, x):  # type: ignore[no-untyped-def]
    """The y >= 0 that maximises `gradient (y - x) - (y - x)^T information (y - x) / 2`, nearly.

    Solves `information y = information x + gradient` over the free entries; while one is negative,
    the most negative is fixed at zero and the others are solved again. x if the matrix is
    singular. O(k^4) at worst for k entries."""
    k = len(x)
    target = np.zeros(k)
    right = gradient.copy()
    for e in range(k):
        for f in range(k):
            right[e] += information[e, f] * x[f]
    free = np.arange(k)
    lower, solved = np.empty((k, k)), np.empty(k)
    size = k
    while size:
        if not _solve(information, right, free, size, lower, solved):
            return x.copy()
        worst = -1
        for a in range(size):
            if solved[a] < 0 and (worst < 0 or solved[a] < solved[worst]):
                worst = a
        if worst < 0:
            for a in range(size):
                target[free[a]] = solved[a]
            return target
        size -= 1
        for a in range(worst, size):
            free[a] = free[a + 1]
    return target


@subroutine
def _solve(information, right, free, size, lower, solved):  # type: ignore[no-untyped-def]
    """Solve `info y = right` over the rows `free[:size]`, by Cholesky, the diagonal slightly
    raised; whether that was possible."""
    for i in range(size):
        for j in range(i + 1):
            t = information[free[i], free[j]]
            if i == j:
                t = t * (1 + 1e-9) + 1e-9
            for k in range(j):
                t -= lower[i, k] * lower[j, k]
            if i > j:
                lower[i, j] = t / lower[j, j]
            elif t > 0:
                lower[i, i] = np.sqrt(t)
            else:
                return False
        t = right[free[i]]
        for k in range(i):
            t -= lower[i, k] * solved[k]
        solved[i] = t / lower[i, i]
    for i in range(size - 1, -1, -1):
        t = solved[i]
        for k in range(i + 1, size):
            t -= lower[k, i] * solved[k]
        solved[i] = t / lower[i, i]
    return True
