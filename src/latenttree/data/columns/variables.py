"""`Variable`: one variable as it was read, and many of them as a `Table`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.checks import N_SHOWN, constant_variables, listing
from latenttree.data.columns.codes import CodeStack, code_dtype
from latenttree.data.table import CODED, Table, Values
from latenttree.errors import Option, Text

Remark = Literal["", "whole", "many", "rare", "bag", "lost"]


@dataclass(frozen=True, eq=False)
class Variable:
    """What the structure and what likelihoods see of a variable.

    Attributes
    ----------
    name, family : its name and family, one of `FAMILIES`.
    dim : coordinates of its structural form.
    codes : (n,) its category, or the bin of its number; -1 where missing; None for a block.
    block : (n, dim) dense or CSR structural form, where codes do not say it; rows of missing
        values are empty.
    labels : (dim,) labels of its categories, None where it has none.
    values : its values for likelihoods, as in `Values.arrays`; None where codes say it all.
    gaps : (n,) True where a block is missing; None where none is, or where codes say it.
    n_missing : in how many samples it is missing.
    constant : the single value that it has, as text; None where it varies.
    remark : what people should know of how it was read.
    n_values : how many different values it has, where a remark tells.
    """

    name: str
    family: str
    dim: int
    codes: NDArray[Any] | None = None
    block: Any = None
    labels: NDArray[Any] | None = None
    values: Any = None
    gaps: NDArray[np.bool_] | None = None
    n_missing: int = 0
    constant: str | None = None
    remark: Remark = ""
    n_values: int = 0

    @property
    def only_value(self) -> str:
        """The value of a constant, in words."""
        some = self.n_missing > 0 and self.remark != "lost"
        return f"{self.constant}, or missing" if some else f"{self.constant}"


def codes_of_variables(
    variables: Iterable[Variable], names: Sequence[str], n: int, drop_constant: bool
) -> Table:
    """A table of kind "codes"; variables arrive one at a time and their codes do not stay."""
    stack, found = CodeStack(n, len(names)), []
    for variable in variables:
        assert variable.codes is not None
        stack.add(variable.codes, variable.dim, variable.n_missing > 0)
        found.append(replace(variable, codes=None))
    codes = stack.finish()
    kept, dropped = varying(found, n, drop_constant)
    lost = all_missing_notes(found)
    if dropped:
        codes = np.ascontiguousarray(codes[:, kept])
        found = [found[i] for i in kept]
    values = None if all_categorical(found) else _values(found, _without_bins(found, codes))
    return table_of(found, n, dropped, lost, codes=codes, values=values)


def blocks_of_variables(variables: Sequence[Variable], n: int, drop_constant: bool) -> Table:
    """A table of kind "blocks": every variable as its vector, side by side in one CSR."""
    kept, dropped = varying(variables, n, drop_constant)
    lost = all_missing_notes(variables)
    found = [variables[i] for i in kept]
    missing = None
    if any(variable.n_missing for variable in found):
        missing = np.column_stack([_gaps(variable, n) for variable in found])
    matrix = _side_by_side([_structural(variable) for variable in found])
    values = None if all_categorical(found) else _values(found, _codes(found, n))
    return table_of(found, n, dropped, lost, matrix=matrix, missing=missing, values=values)


def table_of(
    found: Sequence[Variable], n: int, dropped: tuple[str, ...], lost: list[str], **stored: Any
) -> Table:
    """The table of variables whose stored forms are given."""
    dims = np.asarray([variable.dim for variable in found], dtype=np.int64)
    return Table(
        names=tuple(variable.name for variable in found),
        kind="codes" if "codes" in stored else "blocks",
        n_samples=n,
        dims=dims,
        categories=tuple(variable.labels for variable in found),
        offsets=np.concatenate([[0], np.cumsum(dims)]).astype(np.int64),
        dropped=dropped,
        notes=(*_notes(found, n), *lost),
        **stored,
    )


def varying(
    variables: Sequence[Variable], n: int, drop_constant: bool
) -> tuple[list[int], tuple[str, ...]]:
    """Numbers of the variables that vary, and names of the others."""
    constant = [variable for variable in variables if variable.constant is not None]
    values = [v.only_value for v in constant]
    names = [variable.name for variable in constant]
    dropped = constant_variables(names, values, n, drop_constant, len(variables))
    return [i for i, variable in enumerate(variables) if variable.constant is None], dropped


# --- values --------------------------------------------------------------------------


def all_categorical(found: Sequence[Variable]) -> bool:
    """Whether codes say it all, so that no values are kept beside them."""
    return all(variable.family == "categorical" for variable in found)


def _values(found: Sequence[Variable], codes: NDArray[Any]) -> Values:
    arrays = {i: v.values for i, v in enumerate(found) if v.values is not None}
    return Values(tuple(variable.family for variable in found), codes, arrays)


def _without_bins(found: Sequence[Variable], codes: NDArray[Any]) -> NDArray[Any]:
    """(n, p) signed codes of a table of kind "codes": the categories, -1 where it has bins."""
    coded = np.array([variable.family in CODED for variable in found])
    if not coded.any():
        return _no_codes(codes.shape)
    signed = codes.astype(_signed(found))
    signed[:, ~coded] = -1
    return signed


def _codes(found: Sequence[Variable], n: int) -> NDArray[Any]:
    """(n, p) the same from variables that have their codes."""
    coded = [i for i, variable in enumerate(found) if variable.family in CODED]
    if not coded:
        return _no_codes((n, len(found)))
    codes = np.full((n, len(found)), -1, dtype=_signed(found))
    for i in coded:
        codes[:, i] = found[i].codes
    return codes


def _signed(found: Sequence[Variable]) -> type[np.integer[Any]]:
    return code_dtype(max(v.dim for v in found if v.family in CODED), signed=True)


def _no_codes(shape: tuple[int, int]) -> NDArray[Any]:
    """A view of a single -1: it takes no memory."""
    return np.broadcast_to(np.int8(-1), shape)


# --- blocks --------------------------------------------------------------------------


def one_hot(codes: NDArray[Any], n_categories: int) -> sparse.csr_array:
    """(n, d) CSR with a single one in each row; none in rows of code -1."""
    n, known = len(codes), codes >= 0
    indptr = np.arange(n + 1, dtype=np.int32)
    if not known.all():
        indptr[1:] = np.cumsum(known)
        codes = codes[known]
    ones = np.ones(len(codes), dtype=np.float32)
    return sparse.csr_array((ones, codes.astype(np.int32), indptr), shape=(n, n_categories))


def _structural(variable: Variable) -> Any:
    if variable.codes is None:
        return variable.block
    return one_hot(variable.codes, variable.dim)


def _gaps(variable: Variable, n: int) -> NDArray[np.bool_]:
    if variable.codes is not None:
        return np.asarray(variable.codes < 0)
    return np.zeros(n, dtype=np.bool_) if variable.gaps is None else variable.gaps


def _side_by_side(parts: Sequence[Any]) -> sparse.csr_array:
    if all(isinstance(part, np.ndarray) for part in parts):
        return sparse.csr_array(np.hstack(parts))
    blocks = [sparse.csr_array(part) for part in parts]
    matrix = sparse.csr_array(sparse.hstack(blocks, format="csr"))
    matrix.sort_indices()
    return matrix


# --- notes ---------------------------------------------------------------------------


def _notes(found: Sequence[Variable], n: int) -> list[str]:
    """How data were read, in sentences, where it could surprise."""
    many = "different whole numbers"
    sentences: list[tuple[Remark, str, str, str, str]] = [
        ("whole", "floats that are few whole numbers", "categories", "gaussian", "a number"),
        ("many", many, "categories", "gaussian", "a number"),
        ("rare", f"{many} with few rows for each", "numbers", "categorical", "categories"),
        ("bag", "whole numbers", "bags of counts", "gaussian_diagonal", "a real vector"),
    ]
    notes: list[str] = []
    for remark, what, read, other, otherwise in sentences:
        chosen = [variable for variable in found if variable.remark == remark]
        if chosen:
            name = chosen[0].name
            option = Option("family", {name: other})
            holds = f"{_hold(chosen, what)}, read as {read}; "
            notes.append(Text(holds, option, f" reads it as {otherwise}"))
    return notes + _gap_notes(found, n)


def _hold(chosen: Sequence[Variable], what: str) -> str:
    """Which variables hold what, and how many different values where that is known."""
    counted = [f"{variable.n_values:,} " if variable.n_values else "" for variable in chosen]
    if chosen[0].remark not in ("many", "rare"):
        counted = [""] * len(chosen)
    if len(chosen) == 1:
        return f"{chosen[0].name!r} holds {counted[0]}{what}"
    if not counted[0]:
        return f"{listing([variable.name for variable in chosen])} hold {what}"
    shown = [f"{v.name!r} ({k.strip()})" for v, k in zip(chosen, counted, strict=True)][:N_SHOWN]
    more = f" and {len(chosen) - N_SHOWN} more" if len(chosen) > N_SHOWN else ""
    return f"{', '.join(shown)}{more} hold many {what}"


def all_missing_notes(found: Sequence[Variable]) -> list[str]:
    """A note on variables that have no value at all; they are constant and so left out."""
    names = [variable.name for variable in found if variable.remark == "lost"]
    if not names:
        return []
    return [f"{listing(names)} {'is' if len(names) == 1 else 'are'} missing in all rows: left out"]


def _gap_notes(found: Sequence[Variable], n: int) -> list[str]:
    gappy = [variable for variable in found if 2 * variable.n_missing > n]
    if not gappy:
        return []
    rows = [f"those of {v.name!r} rest on {n - v.n_missing:,} rows" for v in gappy[:N_SHOWN]]
    more = f" (and {len(gappy) - N_SHOWN} more)" if len(gappy) > N_SHOWN else ""
    if len(gappy) == 1:
        share = gappy[0].n_missing / n
        return [
            f"{gappy[0].name!r} is missing in {share:.0%} of {n:,} rows; its distances rest on "
            f"{n - gappy[0].n_missing:,} rows"
        ]
    return [
        f"{len(gappy)} variables are missing in more than half of {n:,} rows; of their distances "
        f"{', '.join(rows)}{more}"
    ]
