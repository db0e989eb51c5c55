"""Evidence of samples: what is known of them, read from tables or from records."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data import Schema
from latenttree.data.checks import listing
from latenttree.data.schema.rows import Rows
from latenttree.data.schema.unseen import HandleUnknown
from latenttree.engine import blocks
from latenttree.engine.arrays import Floats
from latenttree.errors import DataError
from latenttree.model.emissions import soft_evidence
from latenttree.model.inference import Evidence
from latenttree.model.samples import Chunk, evidence_of
from latenttree.model.tree_model import TreeModel
from latenttree.queries.nodes import FittedModel
from latenttree.queries.records import Record, is_vector, read_records

CHUNK_BYTES = 1 << 27
"""Memory of the working arrays of a range of samples."""


@dataclass(frozen=True, eq=False)
class SampleEvidence:
    """What is known of n samples.

    Attributes
    ----------
    rows : codes and numbers of the observed variables; -1 and NaN where a value is missing.
    soft : node -> (n, dims[v]) weights over its states (soft evidence).
    hidden : hidden node of a Gaussian tree -> (n, dims[v]) values, NaN where they are not known.
    """

    rows: Rows
    soft: Mapping[int, Floats] = field(default_factory=dict)
    hidden: Mapping[int, Floats] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.rows.n_samples

    def evidence(self, model: TreeModel, start: int, stop: int) -> Evidence:
        """The evidence of samples start:stop, as inference takes it."""
        codes, arrays = self.rows.take(start, stop), self.rows.arrays_at(start, stop)
        soft = {v: weights[start:stop] for v, weights in self.soft.items()}
        return joint_evidence(model, codes, arrays, soft)

    def ranges(self, model: TreeModel, width: int) -> Iterator[tuple[int, int, Evidence]]:
        """Ranges of samples whose working arrays, `width` numbers each, fit in memory."""
        for start, stop in sample_ranges(len(self), width):
            yield start, stop, self.evidence(model, start, stop)


def no_overflow_warnings() -> np.errstate:
    """A context in which squares overflow silently: values that far out are impossible."""
    return np.errstate(over="ignore", invalid="ignore")


def sample_ranges(n: int, width: int) -> Iterator[tuple[int, int]]:
    """Ranges of n samples whose working arrays, `width` numbers a sample, fit in memory."""
    yield from blocks(n, max(64, CHUNK_BYTES // (8 * max(width, 1))))


def joint_evidence(
    model: TreeModel, codes: NDArray[Any], arrays: Mapping[int, Any], soft: Mapping[int, Floats]
) -> Evidence:
    """The evidence of codes, numbers and weights of the same samples."""
    with no_overflow_warnings():
        if not soft:
            return evidence_of(Chunk(codes, arrays), model)
        if not arrays:
            return Evidence(codes, soft)
        return _with_weights(model, codes, arrays, soft)


class _SoftEmission:
    """Weights over the states of a node, with the interface of an emission of that node."""

    def log_likelihood(self, weights: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            return np.log(weights)


def _with_weights(
    model: TreeModel, codes: NDArray[Any], arrays: Mapping[int, Any], soft: Mapping[int, Floats]
) -> Evidence:
    """Numbers and weights together.

    Their likelihoods are multiplied as logarithms: where a number all but excludes the state that
    the weights give, the product must not underflow.
    """
    emissions = {v: emission for v, emission in model.emissions.items() if v in arrays}
    weighted: dict[int, Any] = {-1 - v: _SoftEmission() for v in soft}
    parents = {v: int(model.parents[v]) for v in emissions} | {-1 - v: v for v in soft}
    values = {v: arrays[v] for v in emissions} | {-1 - v: w for v, w in soft.items()}
    return Evidence(codes, *soft_evidence(emissions | weighted, parents, values))


def check_possible(log_likelihood: Floats, rows: NDArray[Any]) -> None:
    """Raise where a sample has probability zero; `rows` are the numbers of the samples."""
    impossible = np.flatnonzero(np.isneginf(log_likelihood))
    if len(impossible):
        row = int(rows[impossible[0]])
        more = f" (and {len(impossible) - 1} more)" if len(impossible) > 1 else ""
        raise DataError(
            f"the evidence in row {row}{more} has probability zero under the model, so it has no "
            "posterior",
            "correct it, or mark values that are in doubt as missing",
            row=row,
        )


# --- reading -------------------------------------------------------------------------


def read_samples(
    model: FittedModel,
    schema: Schema,
    X: Any,
    queried: Collection[int] = (),
    given: Collection[int] | None = None,
    handle_unknown: HandleUnknown = "error",
) -> SampleEvidence:
    """The samples of a table, of one record `{name: value}` or of a list of records.

    Columns of the nodes `queried` are not read, nor those of nodes that are not `given` (None:
    all); a record with a value for a node that is queried is an error. So are labels of a record
    that training did not have; those of a table are what `handle_unknown` says, see
    `Schema.encode`.
    """
    if X is None or (isinstance(X, Mapping) and not X):
        remedy = (
            "pass samples; for probabilities without evidence use marginal(node) or "
            "predict_proba(None, query, evidence=[])"
        )
        raise DataError(f"there is no evidence: X is {X!r}", remedy, value=X, option="X")
    unused = {
        name
        for v, name in enumerate(schema.names)
        if v in queried or (given is not None and v not in given)
    }
    records = _as_records(schema, X, unused)
    if records is not None:
        return SampleEvidence(*read_records(model, schema, records, queried, given))
    hidden = [model.tree.names[v] for v in given or () if v >= schema.n_vars]
    if hidden:
        what = f"evidence names the hidden {listing(hidden)}, which a table does not have"
        remedy = f"give hidden evidence in records, for example {{{hidden[0]!r}: 0}}"
        raise DataError(what, remedy, option="evidence", node=hidden[0])
    return SampleEvidence(schema.rows(X, unused=unused, handle_unknown=handle_unknown))


def read_to_fill(model: FittedModel, schema: Schema, X: Any) -> SampleEvidence | None:
    """Records whose gaps are to be filled, with a gap in every variable that they do not name; None
    where `X` is a table."""
    if not isinstance(X, Mapping | list | tuple):
        return None
    records = _as_records(schema, X, ())
    if records is None:
        return None
    rows, soft, hidden = read_records(model, schema, records, (), None)
    return SampleEvidence(replace(rows, arrays=_with_gaps(schema, rows)), soft, hidden)


def _with_gaps(schema: Schema, rows: Rows) -> dict[int, Any]:
    """Arrays of all variables that are not categorical, NaN where nothing is known."""
    arrays: dict[int, Any] = {}
    for v in np.flatnonzero(~schema.coded).tolist():
        gaps = np.full((rows.n_samples, *schema.shape_of(v)), np.nan)
        arrays[v] = rows.arrays.get(v, gaps)
    return arrays


def no_evidence(model: TreeModel) -> SampleEvidence:
    """A sample of which nothing is known."""
    return SampleEvidence(Rows(1, Evidence.nothing(model, 1).codes))


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
