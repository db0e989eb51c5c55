"""Blocks, one vector a sample, to variables of their families.

Structure is learned from coordinates whose expectation is linear in the hidden state. A value that
is missing in a row with other values is filled by the mean of its coordinate, which preserves
linearity: the filled coordinate is a mixture of the true one and a constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.checks import (
    OnlyValue,
    cell_error,
    check_finite,
    check_known,
    check_squares,
    column_error,
    wrong_count,
)
from latenttree.data.columns.bins import (
    bin_codes,
    mean_and_deviation,
    normal_scores,
    quantile_edges,
    standardised,
)
from latenttree.data.columns.blocks import canonical_csr, hot_positions
from latenttree.data.columns.families import (
    AUTO,
    GAUSSIAN,
    NUMBERS,
    BlockContent,
    block_family,
    check_scores,
    whole,
    wrong_family,
)
from latenttree.data.columns.variables import Variable, one_hot
from latenttree.data.values import CODED, TRAITS, outside_support

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Block = Any  # (n, d) floats with NaN, or canonical CSR

WIDEST_BINNED = 16
"""Dense real vectors of at most so many coordinates are binned, each coordinate by itself."""

ROUNDING = 1e-6
"""Shares in single precision that differ by less are equal."""

_PREVIEW = 100  # rows that are looked at first


# --- reading -------------------------------------------------------------------------


def check_block(array: NDArray[Any], columns: Sequence[str]) -> None:
    """Raise unless a dense block holds finite numbers."""
    if array.dtype.kind not in "biuf":
        what = f"a block must be numeric, but {columns[0]!r} has type {array.dtype}"
        raise column_error(what, "pass categories as a 1-D vector", columns[0], array.dtype)
    check_finite(array, columns)


def dense_block(array: NDArray[Any], columns: Sequence[str], mask: Mask | None = None) -> Floats:
    """(n, d) float64 with NaN where missing."""
    check_block(array, columns)
    x = np.array(array, dtype=np.float64, order="C")
    if mask is not None:
        x[mask] = np.nan
    lost = np.isnan(x).all(axis=0)
    if lost.any():
        check_known(0, len(x), columns[int(lost.argmax())])
    return x


def sparse_block(matrix: Any, columns: Sequence[str], requested: str) -> sparse.csr_array:
    """Canonical CSR; negative values only where a Gaussian family is requested."""
    return canonical_csr(matrix, columns, negative=requested in GAUSSIAN)


def content_of(x: Block) -> BlockContent:
    """What the known values of a block are: one-hot rows, zeros and ones, counts or reals."""
    if sparse.issparse(x):
        if (x.data == 1).all():
            return "one-hot" if (np.diff(x.indptr) == 1).all() else "binary"
        return "counts" if whole(x.data) else "real"
    if len(x) > _PREVIEW and content_of(x[:_PREVIEW]) == "real":
        return "real"
    gaps = np.isnan(x)
    known = x[~gaps] if gaps.any() else x
    if not whole(known):
        return "real"
    if known.max(initial=0) > 1:
        return "counts"
    rows = x[~gaps.all(axis=1)]
    return "one-hot" if (rows.sum(axis=1) == 1).all() else "binary"


# --- to variables --------------------------------------------------------------------


def variable_of_block(
    x: Block,
    name: str,
    columns: Sequence[str],
    requested: str,
    weights: Floats | None,
    scores: bool = False,
) -> Variable:
    """The variable of a block, of the requested family or the one that its values suggest; of
    normal `scores` for a Gaussian tree."""
    if scores:
        return _score_variable(x, name, requested, weights)
    content, width = content_of(x), x.shape[1]
    family = block_family(requested, content, width, name)
    if not TRAITS[family].sparse and sparse.issparse(x):
        what = f"family {family!r} needs a dense block, but {name!r} is sparse"
        remedy = "use 'gaussian_diagonal' or 'gaussian_spherical', or pass it dense"
        raise wrong_family(what, remedy, name, family)
    if family in CODED:
        return _coded(x, name, family)
    _check_holds(x, content, family, columns)
    if family in NUMBERS and (width == 1 or (family in GAUSSIAN and _is_narrow(x))):
        dense = x.toarray().astype(np.float64) if sparse.issparse(x) else x
        structural = _bins(dense, weights)
    elif family in GAUSSIAN:
        structural = _scaled(x, weights) if sparse.issparse(x) else standardised(x, weights)
    else:
        makers = {"poisson": _scaled, "multinomial": _shares, "multihot": _hot}
        structural = makers[family](x, weights)
    remark = "bag" if requested == AUTO and family == "multinomial" else ""
    return _finished(x, structural, name, family, weights, remark)


def _score_variable(x: Block, name: str, requested: str, weights: Floats | None) -> Variable:
    """The variable of a block in a Gaussian tree: normal scores of its coordinates."""
    check_scores(requested, name)
    check_squares(x.data if sparse.issparse(x) else x, name)
    structural = _scaled(x, weights) if sparse.issparse(x) else normal_scores(x, weights)
    return _finished(x, structural, name, "gaussian", weights, "")


def _is_narrow(x: Any) -> bool:
    return not sparse.issparse(x) and x.shape[1] <= WIDEST_BINNED


def _finished(
    x: Any, structural: Any, name: str, family: str, weights: Floats | None, remark: Any
) -> Variable:
    gaps = _gaps(x, family)
    if gaps is not None:
        check_known(len(gaps) - int(gaps.sum()), len(gaps), name)
        structural = _emptied(structural, gaps)
    values = x
    if family == "multinomial" and not sparse.issparse(x):
        values = np.where(np.isnan(x).any(axis=1)[:, None], np.nan, x)  # no part of a bag is one
    return Variable(
        name,
        family,
        structural.shape[1],
        block=structural,
        values=values,
        gaps=gaps,
        n_missing=0 if gaps is None else int(gaps.sum()),
        constant=_constant(x, structural, gaps, family, weights),
        remark=remark,
    )


def _coded(x: Any, name: str, family: str) -> Variable:
    codes = hot_positions(x, name)
    known = codes[codes >= 0]
    check_known(len(known), len(codes), name)
    single = (known == known[0]).all()
    return Variable(
        name,
        family,
        x.shape[1],
        codes=codes,
        n_missing=len(codes) - len(known),
        constant=_only(np.eye(x.shape[1])[known[0]]) if single else None,
    )


def _check_holds(x: Any, content: BlockContent, family: str, columns: Sequence[str]) -> None:
    """Raise unless counts are non-negative whole numbers, and multi-hot codes 0 or 1."""
    if family in GAUSSIAN or content in ("one-hot", "binary"):
        return
    if content == "counts" and family != "multihot":
        return
    matrix = sparse.coo_array(x)
    value = matrix.data
    bad = outside_support(value, family)
    if not bad.any():  # counts too large for integers, but counts
        return
    at = int(bad.argmax())
    row, column = int(matrix.row[at]), columns[int(matrix.col[at])]
    if family != "multihot":
        raise wrong_count(value[at], row, column, family)
    holds = ": family 'multihot' holds codes that are 0 or 1"
    remedy = "use 'multinomial' or 'poisson' for counts"
    raise cell_error(f"value {value[at]:g}", value[at], row, column, remedy, holds)


def _gaps(x: Any, family: str) -> Mask | None:
    """(n,) True where a row has no value; None where there is no such row."""
    if sparse.issparse(x):
        gaps = np.diff(x.indptr) == 0 if family == "multinomial" else None
    elif family == "multinomial":
        gaps = ~(x.sum(axis=1) > 0)
    else:
        gaps = np.isnan(x).all(axis=1)
    return gaps if gaps is not None and gaps.any() else None


def _emptied(structural: Any, gaps: Mask) -> Any:
    if not sparse.issparse(structural):
        structural[gaps] = 0.0
        return structural
    known = sparse.diags_array((~gaps).astype(structural.dtype), format="csr")
    matrix = sparse.csr_array(known @ structural)
    matrix.eliminate_zeros()
    return matrix


def _constant(
    x: Any, structural: Any, gaps: Mask | None, family: str, weights: Floats | None
) -> OnlyValue | None:
    """The only row of a block; None where it varies."""
    if family == "multinomial":
        known = slice(None) if gaps is None else ~gaps
        shares = structural[known]
        mean, deviation = mean_and_deviation(shares)
        return None if deviation.max() > ROUNDING else _only(mean)
    mean, deviation = mean_and_deviation(x, weights)
    return None if deviation.any() else _only(mean)


def _only(row: NDArray[Any]) -> OnlyValue:
    row = np.asarray(row, dtype=np.float64)
    return OnlyValue(row, np.array2string(row, threshold=6, edgeitems=2, precision=6))


# --- structural forms ----------------------------------------------------------------


def _filled(x: Floats, mean: Floats) -> Floats:
    gaps = np.isnan(x)
    return np.where(gaps, mean, x) if gaps.any() else x


def _bins(x: Floats, weights: Floats | None) -> sparse.csr_array:
    """Quantile bins of every coordinate side by side, one-hot; a missing coordinate has the
    frequencies of its bins."""
    return sparse.csr_array(
        sparse.hstack([_coordinate_bins(column, weights) for column in x.T], format="csr")
    )


def _coordinate_bins(column: Floats, weights: Floats | None) -> sparse.csr_array:
    known = ~np.isnan(column)
    mass = None if weights is None else weights[known]
    edges = quantile_edges(column[known], mass)
    codes = np.full(len(column), -1)
    codes[known] = bin_codes(column[known], edges)
    matrix = one_hot(codes, len(edges) + 1)
    if known.all():
        return matrix
    counts = np.bincount(codes[known], mass, len(edges) + 1)
    gaps = sparse.csr_array((~known).astype(np.float32)[:, None])
    return matrix + gaps @ sparse.csr_array((counts / counts.sum()).astype(np.float32)[None])


def _scaled(x: Block, weights: Floats | None) -> Any:
    """Coordinates divided by their standard deviation; sparse stays sparse."""
    mean, deviation = mean_and_deviation(x, weights)
    deviation[deviation == 0] = 1.0
    if sparse.issparse(x):
        data = (x.data / deviation[x.indices]).astype(np.float32)
        return sparse.csr_array((data, x.indices, x.indptr), shape=x.shape)
    return (_filled(x, mean) / deviation).astype(np.float32)


def _shares(x: Block, weights: Floats | None) -> sparse.csr_array:
    """Counts divided by the total of their row; rows of total 0 and rows with gaps are empty."""
    counts = sparse.csr_array(x.copy() if sparse.issparse(x) else np.nan_to_num(x))
    total = np.asarray(x.sum(axis=1), dtype=np.float64).ravel()
    inverse = np.where(total > 0, 1.0 / np.where(total > 0, total, 1.0), 0.0)
    data = (counts.data * np.repeat(inverse, np.diff(counts.indptr))).astype(np.float32)
    shares = sparse.csr_array((data, counts.indices, counts.indptr), shape=counts.shape)
    shares.eliminate_zeros()
    return shares


def _hot(x: Block, weights: Floats | None) -> sparse.csr_array:
    """(n, d + 1): coordinate 0 is 1 where a row has any of the codes, then the codes."""
    if sparse.issparse(x):
        return _with_some((np.diff(x.indptr) > 0).astype(np.float32), x)
    gaps = np.isnan(x)
    has_one = (x == 1).any(axis=1)
    if not gaps.any():
        return _with_some(has_one.astype(np.float32), x)
    open_rows = gaps.any(axis=1) & ~has_one
    some = has_one.astype(np.float64)
    mean = mean_and_deviation(np.column_stack([np.where(open_rows, np.nan, some), x]), weights)[0]
    some[open_rows] = mean[0]
    return _with_some(some, _filled(x, mean[1:]))


def _with_some(some: NDArray[Any], codes: Any) -> sparse.csr_array:
    parts = [sparse.csr_array(some[:, None]), sparse.csr_array(codes)]
    matrix = sparse.csr_array(sparse.hstack(parts, format="csr"), dtype=np.float32)
    matrix.sort_indices()
    return matrix
