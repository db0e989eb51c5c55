"""`Variable`: one variable as it was read, and many of them as a `Table`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.checks import OnlyValue, constant_variables, first_few, listing
from latenttree.data.columns.codes import ColumnStack, code_dtype
from latenttree.data.table import Table, stored_table
from latenttree.data.values import CODED, Values
from latenttree.errors import Caution, Option, Phrase, Text

Remark = Literal[
    "",
    "whole",
    "scale",
    "rounded",
    "mixed",
    "many",
    "rare",
    "unique",
    "names",
    "few",
    "bag",
    "lost",
]


@dataclass(frozen=True, eq=False)
class Variable:
    """One variable: its form for the structure and its values for likelihoods.

    Attributes
    ----------
    name, family : its name and family, one of `TABLE_FAMILIES`.
    dim : coordinates of its structural form.
    codes : (n,) its category, or the bin of its number; -1 where missing; None for a block.
    block : (n, dim) dense or CSR structural form, where there are no codes; rows of missing values
        are empty.
    labels : (dim,) labels of its categories, None where it has none.
    values : its values for likelihoods, as in `Values.arrays`; None where codes suffice.
    gaps : (n,) True where a block is missing; None where none is, or where codes tell.
    n_missing : samples in which it is missing.
    constant : its only value; None where it varies.
    remark : why a note should tell how it was read.
    n_values : its different values, where a remark needs their number."""

    name: str
    family: str
    dim: int
    codes: NDArray[Any] | None = None
    block: Any = None
    labels: NDArray[Any] | None = None
    values: Any = None
    gaps: NDArray[np.bool_] | None = None
    n_missing: int = 0
    constant: OnlyValue | None = None
    remark: Remark = ""
    n_values: int = 0

    @property
    def only_value(self) -> OnlyValue:
        """The value of a constant variable; its text says where it may be missing."""
        assert self.constant is not None
        value, text = self.constant
        some = self.n_missing > 0 and self.remark != "lost"
        return OnlyValue(value, f"{text}, or missing" if some else text)


def codes_of_variables(
    variables: Iterable[Variable], names: Sequence[str], n: int, drop_constant: bool
) -> Table:
    """A table of kind "codes"; variables arrive one at a time, and only their codes are copied."""
    stack, read = ColumnStack(n, len(names), np.uint8), []
    largest, gaps = 2, False
    for variable in variables:
        assert variable.codes is not None
        largest, gaps = max(largest, variable.dim), gaps or variable.n_missing > 0
        stack.add(variable.codes, code_dtype(largest, gaps))
        read.append(replace(variable, codes=None))
    codes = stack.finish()
    kept, dropped = varying(read, n, drop_constant)
    lost = all_missing_notes(read)
    if dropped:
        codes = np.ascontiguousarray(codes[:, kept])
        read = [read[i] for i in kept]
    values = None if all_categorical(read) else _values(read, _without_bins(read, codes))
    return table_of(read, n, dropped, lost, codes=codes, values=values)


def blocks_of_variables(variables: Sequence[Variable], n: int, drop_constant: bool) -> Table:
    """A table of kind "blocks": the vectors of all variables, side by side in one CSR."""
    kept, dropped = varying(variables, n, drop_constant)
    lost = all_missing_notes(variables)
    used = [variables[i] for i in kept]
    missing = None
    if any(variable.n_missing for variable in used):
        missing = np.column_stack([_gaps(variable, n) for variable in used])
    matrix = _side_by_side([_structural(variable) for variable in used])
    values = None if all_categorical(used) else _values(used, _codes(used, n))
    return table_of(used, n, dropped, lost, matrix=matrix, missing=missing, values=values)


def table_of(
    variables: Sequence[Variable], n: int, dropped: tuple[str, ...], lost: list[str], **stored: Any
) -> Table:
    """The table of variables whose stored forms are given."""
    return stored_table(
        [variable.name for variable in variables],
        [variable.dim for variable in variables],
        [variable.labels for variable in variables],
        dropped=dropped,
        notes=(*_notes(variables, n), *lost),
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


def all_categorical(variables: Sequence[Variable]) -> bool:
    """Whether codes suffice, so that the table needs no `values`."""
    return all(variable.family == "categorical" for variable in variables)


def _values(variables: Sequence[Variable], codes: NDArray[Any]) -> Values:
    arrays = {i: v.values for i, v in enumerate(variables) if v.values is not None}
    return Values(tuple(variable.family for variable in variables), codes, arrays)


def _without_bins(variables: Sequence[Variable], codes: NDArray[Any]) -> NDArray[Any]:
    """(n, p) signed codes of a table of kind "codes": categories, and -1 for binned numbers."""
    coded = np.array([variable.family in CODED for variable in variables])
    if not coded.any():
        return _no_codes(codes.shape)
    signed = codes.astype(_signed(variables))
    signed[:, ~coded] = -1
    return signed


def _codes(variables: Sequence[Variable], n: int) -> NDArray[Any]:
    """(n, p) the same from variables that hold their codes."""
    coded = [i for i, variable in enumerate(variables) if variable.family in CODED]
    if not coded:
        return _no_codes((n, len(variables)))
    codes = np.full((n, len(variables)), -1, dtype=_signed(variables))
    for i in coded:
        codes[:, i] = variables[i].codes
    return codes


def _signed(variables: Sequence[Variable]) -> type[np.integer[Any]]:
    return code_dtype(max(v.dim for v in variables if v.family in CODED), signed=True)


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


class Sentence(NamedTuple):
    """What a note says of columns with a remark.

    Attributes
    ----------
    holds : what they hold.
    read : what they are read as.
    family, otherwise : another family, and what it reads them as; none: they had better be dropped
        if they identify rows.
    counted : whether the numbers of different values tell why.
    warned : whether the note is a warning too."""

    holds: str
    read: str
    family: str = ""
    otherwise: str = ""
    counted: bool = False
    warned: bool = False

    def note(self, chosen: Sequence[Variable]) -> Text:
        """The note on these variables."""
        text = f"{self._hold(chosen)}, read as {self.read}; "
        kind = Caution if self.warned else Text
        if not self.family:
            return kind(text, Phrase("drop column", "drop it"), " if it identifies rows")
        option = Option("family", {chosen[0].name: self.family})
        return kind(text, option, f" reads it as {self.otherwise}")

    def _hold(self, chosen: Sequence[Variable]) -> str:
        """Which variables hold what, and their numbers of different values."""
        if len(chosen) == 1:
            count = f"{chosen[0].n_values:,} different " if self.counted else ""
            return f"{chosen[0].name!r} holds {count}{self.holds}"
        if not self.counted:
            return f"{listing([variable.name for variable in chosen])} hold {self.holds}"
        names = first_few([f"{v.name!r} ({v.n_values:,})" for v in chosen])
        return f"{names} hold many different {self.holds}"


WHOLE = "whole numbers"
SENTENCES: Mapping[Remark, Sentence] = {
    "whole": Sentence(
        f"floats that are few {WHOLE}", "categories", family="gaussian", otherwise="a number"
    ),
    "scale": Sentence(
        f"few evenly spaced {WHOLE}", "ordinal", family="categorical", otherwise="categories"
    ),
    "rounded": Sentence(
        f"a few fractions among few {WHOLE}",
        "levels, with the fractions rounded",
        family="gaussian",
        otherwise="a number",
        warned=True,
    ),
    "mixed": Sentence(
        f"few {WHOLE} and many fractions",
        "numbers",
        family="ordinal",
        otherwise="ordered levels",
        warned=True,
    ),
    "many": Sentence(WHOLE, "categories", family="gaussian", otherwise="a number", counted=True),
    "rare": Sentence(
        f"{WHOLE} with few rows for each",
        "numbers",
        family="categorical",
        otherwise="categories",
        counted=True,
    ),
    "unique": Sentence(f"{WHOLE}, one for each row", "numbers", counted=True, warned=True),
    "names": Sentence("labels with few rows for each", "categories", counted=True, warned=True),
    "few": Sentence(
        "numbers",
        "real numbers",
        family="categorical",
        otherwise="categories",
        counted=True,
        warned=True,
    ),
    "bag": Sentence(WHOLE, "bags of counts", family="gaussian_diagonal", otherwise="a real vector"),
}
"""The notes on how variables were read, where that could surprise."""


def _notes(variables: Sequence[Variable], n: int) -> list[str]:
    """Sentences on how variables were read, where that could surprise."""
    notes: list[str] = []
    for remark, sentence in SENTENCES.items():
        chosen = [variable for variable in variables if variable.remark == remark]
        if chosen:
            notes.append(sentence.note(chosen))
    return notes + _gap_notes(variables, n)


def all_missing_notes(variables: Sequence[Variable]) -> list[str]:
    """A note on variables without any value; they count as constant and are left out."""
    names = [variable.name for variable in variables if variable.remark == "lost"]
    if not names:
        return []
    return [f"{listing(names)} {'is' if len(names) == 1 else 'are'} missing in all rows: left out"]


def _gap_notes(variables: Sequence[Variable], n: int) -> list[str]:
    gappy = [variable for variable in variables if 2 * variable.n_missing > n]
    if not gappy:
        return []
    if len(gappy) == 1:
        name, lost = gappy[0].name, gappy[0].n_missing
        missing = f"{name!r} is missing in {lost / n:.0%} of {n:,} rows"
        return [f"{missing}; its distances rest on {n - lost:,} rows"]
    rows = [f"those of {v.name!r} rest on {n - v.n_missing:,} rows" for v in gappy]
    missing = f"{len(gappy)} variables are missing in more than half of {n:,} rows"
    return [f"{missing}; of their distances {first_few(rows, ' (and {} more)')}"]
