"""What is known of the samples that a question is about: read from tables or from records."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data import Schema
from latenttree.data.checks import listing
from latenttree.data.schema.new_data import Rows
from latenttree.engine import blocks
from latenttree.errors import DataError
from latenttree.model.emissions import soft_evidence
from latenttree.model.inference import Evidence
from latenttree.model.samples import Chunk
from latenttree.model.tree_model import TreeModel
from latenttree.queries.nodes import Model
from latenttree.queries.records import Record, is_vector, read_records

Floats = NDArray[np.float64]

CHUNK_BYTES = 1 << 27
"""Memory of the working arrays of a range of samples."""


@dataclass(frozen=True, eq=False)
class Asked:
    """What is known of n samples.

    Attributes
    ----------
    rows : codes and numbers of the observed variables.
    soft : node -> (n, dims[v]) weights over its states.
    """

    rows: Rows
    soft: Mapping[int, Floats] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.rows.n_samples

    def evidence(self, model: TreeModel, start: int, stop: int) -> Evidence:
        """What samples start:stop say about the nodes of a model."""
        codes, arrays = self.rows.take(start, stop), self.rows.arrays_at(start, stop)
        soft = {v: weights[start:stop] for v, weights in self.soft.items()}
        with far_values():
            if not soft:
                return Chunk(codes, arrays).evidence(model)
            if not arrays:
                return Evidence(codes, soft)
            return _with_weights(model, codes, arrays, soft)

    def ranges(self, model: TreeModel, width: int) -> Iterator[tuple[int, int, Evidence]]:
        """Ranges of samples whose working arrays, `width` numbers each, fit in memory."""
        for start, stop in spans(len(self), width):
            yield start, stop, self.evidence(model, start, stop)


def far_values() -> np.errstate:
    """Numbers so far from all others that their squares overflow are impossible, not a warning."""
    return np.errstate(over="ignore", invalid="ignore")


def spans(n: int, width: int) -> Iterator[tuple[int, int]]:
    """Ranges of n samples whose working arrays, `width` numbers a sample, fit in memory."""
    yield from blocks(n, max(64, CHUNK_BYTES // (8 * max(width, 1))))


class _Weights:
    """Weights over the states of a node, in the role of an emission of that node."""

    def log_likelihood(self, weights: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(weights)


def _with_weights(
    model: TreeModel, codes: NDArray[Any], arrays: Mapping[int, Any], soft: Mapping[int, Floats]
) -> Evidence:
    """Numbers and weights together, multiplied as logarithms: where a number all but excludes the
    state that is given, the product must not vanish."""
    known = {v: emission for v, emission in model.emissions.items() if v in arrays}
    given: dict[int, Any] = {-1 - v: _Weights() for v in soft}
    parents = {v: int(model.parents[v]) for v in known} | {-1 - v: v for v in soft}
    values = {v: arrays[v] for v in known} | {-1 - v: w for v, w in soft.items()}
    return Evidence(codes, *soft_evidence(known | given, parents, values))


def check_possible(log_likelihood: Floats, rows: NDArray[Any]) -> None:
    """No sample has probability zero."""
    bad = np.flatnonzero(np.isneginf(log_likelihood))
    if len(bad):
        more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
        raise DataError(
            f"the evidence in row {rows[bad[0]]}{more} has probability zero under the model, so "
            "nothing follows from it; correct it, or mark values that are in doubt as missing"
        )


# --- reading -------------------------------------------------------------------------


def read_samples(
    model: Model,
    schema: Schema,
    X: Any,
    asked: Collection[int] = (),
    given: Collection[int] | None = None,
) -> Asked:
    """The samples of a table, of one record `{name: value}` or of a list of records.

    Columns of the nodes `asked` are not read, nor those of nodes that are not `given` (None:
    all); a record with a value for a node that is asked is an error.
    """
    if X is None or (isinstance(X, Mapping) and not X):
        raise DataError(
            f"there is no evidence: X is {X!r}. Pass samples; for probabilities without evidence "
            "use marginal(node) or predict_proba(None, query, evidence=[])"
        )
    unused = {
        name
        for v, name in enumerate(schema.names)
        if v in asked or (given is not None and v not in given)
    }
    records = _as_records(schema, X, unused)
    if records is not None:
        return Asked(*read_records(model, schema, records, asked, given))
    hidden = [model.tree.names[v] for v in given or () if v >= schema.n_vars]
    if hidden:
        raise DataError(
            f"evidence names the hidden {listing(hidden)}, which a table does not have; hidden "
            f"evidence is given in records, for example {{{hidden[0]!r}: 0}}"
        )
    return Asked(schema.rows(X, unused=unused))


def read_to_fill(model: Model, schema: Schema, X: Any) -> Asked | None:
    """Records whose gaps are to be filled, with a gap in every variable that they do not name; None
    where `X` is a table."""
    if not isinstance(X, Mapping | list | tuple):
        return None
    records = _as_records(schema, X, ())
    if records is None:
        return None
    rows, soft = read_records(model, schema, records, (), None)
    if soft:
        names = [model.tree.names[v] for v in soft]
        raise DataError(
            f"the record has weights or hidden states, of {listing(names)}, which cannot be filled "
            "in from; give values of observed variables, or ask predict_proba"
        )
    return Asked(replace(rows, arrays=_with_gaps(schema, rows)))


def _with_gaps(schema: Schema, rows: Rows) -> dict[int, Any]:
    """Arrays of all variables that are no categories, NaN where nothing is known."""
    arrays: dict[int, Any] = {}
    for v in np.flatnonzero(~schema.coded).tolist():
        width = () if schema.form_of(v) == "vector" else (int(schema.dims[v]),)
        arrays[v] = rows.arrays.get(v, np.full((rows.n_samples, *width), np.nan))
    return arrays


def no_evidence(model: TreeModel, n: int = 1) -> Asked:
    """Samples of which nothing is known."""
    codes = Evidence.nothing(model, n).codes
    return Asked(Rows(n, codes))


def _as_records(schema: Schema, X: Any, unused: Collection[str]) -> Sequence[Record] | None:
    if isinstance(X, Mapping):
        return [X] if _is_record(schema, X, unused) else None
    if isinstance(X, list | tuple) and X and all(isinstance(item, Mapping) for item in X):
        return X
    return None


def _is_record(schema: Schema, X: Record, unused: Collection[str]) -> bool:
    """A dict is one sample, unless it has a vector or block for every column that is read."""
    used = [j for i, j in enumerate(schema.index.tolist()) if schema.names[i] not in unused]
    wanted = {schema.columns[j].name for j in used}
    position = {name: j for j, name in enumerate(schema.input_names)}
    columns = all(_is_column(schema, position.get(str(k)), value) for k, value in X.items())
    return not (columns and wanted and wanted <= set(map(str, X)))


def _is_column(schema: Schema, j: int | None, value: Any) -> bool:
    """Whether a value holds many samples of column `j`: a vector of a block is a single one."""
    if not is_vector(value):
        return False
    i = None if j is None else schema.variable_of(j)
    if i is None or schema.coded[i] or schema.form_of(i) == "vector":
        return True
    return bool(np.ndim(value) == 2)
