"""`Description`: what a node of a model stands for, to read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

import numpy as np

from latenttree.data import Schema
from latenttree.data.containers import table_of
from latenttree.engine.arrays import Floats
from latenttree.interpretation.channels import NUMBER, STATES, WHITENED, Channels
from latenttree.interpretation.information import most_informative, related_to_number
from latenttree.interpretation.labels import item_name, marked
from latenttree.phrases import counted

SHOWN_STATES, SHOWN_LABELS = 8, 4
"""States side by side, and labels of a variable, that the text shows."""

NEAREST = 3
"""Hidden nodes that are listed beside variables."""


@dataclass(frozen=True)
class Related:
    """A variable that tells about a node.

    Attributes
    ----------
    name : of the variable, or "group[code]" of a coordinate of a vector.
    bits : mutual information with the node.
    direction : +1 where a higher state of the node goes with more of it, -1 less, 0 without order.
    labels : the labels whose probabilities `values` has (of two labels the second one only), or
        "mean".
    values : (labels, states of the node) `P(label | state)` or `E[x | state]`.
    """

    name: str
    bits: float
    direction: int
    labels: tuple[str, ...]
    values: Floats

    def shown_rows(self) -> list[tuple[str, Floats]]:
        """What texts show: of ordered numbers of more than two levels the mean in each state, else
        the labels that differ most between states."""
        levels = _numbers(self.labels)
        if levels is not None and self.direction and self.values.size:
            return [("mean", levels @ self.values)]
        spread = [np.ptp(row) if len(row) else 0.0 for row in self.values]
        order = np.argsort(-np.array(spread), kind="stable")[:SHOWN_LABELS]
        return [(self.labels[i], self.values[i]) for i in sorted(order.tolist())]


def _numbers(labels: tuple[str, ...]) -> Floats | None:
    """The labels as numbers, where there are several and all are some."""
    try:
        return np.array([float(label) for label in labels]) if len(labels) > 1 else None
    except ValueError:
        return None


@dataclass(frozen=True, repr=False, eq=False)
class Description:
    """What is known of a node.

    Attributes
    ----------
    name : of the node.
    hidden : whether it is a hidden one.
    beside : the hidden node by which a variable that is a vector is described; else empty.
    states : labels of its states; in a Gaussian tree "-1 sd" and "+1 sd", a standard deviation
        below and above its mean; empty for a number.
    shares : (states,) share of the samples in each state; empty where it has none.
    related : the variables that tell most about it, best first.
    nearest : names of the hidden nodes that tell most about it, and their bits.
    library : of `table`, "pandas" or "polars".
    """

    name: str
    hidden: bool
    beside: str
    states: tuple[str, ...]
    shares: tuple[float, ...]
    related: tuple[Related, ...]
    nearest: tuple[tuple[str, float], ...]
    library: str = "pandas"

    @property
    def words(self) -> list[str]:
        """Names of the variables, "(-)" behind those that a higher state has less of."""
        return [marked(each.name, each.direction) for each in self.related]

    @cached_property
    def table(self) -> Any:
        """A DataFrame with a row for each variable and label: variable, bits, direction, label, and
        `P(label | state)` or `E[x | state]` in a column for each state."""
        rows = [(each, i) for each in self.related for i in range(len(each.labels))]
        columns: dict[str, Any] = {
            "variable": [each.name for each, _ in rows],
            "bits": [each.bits for each, _ in rows],
            "direction": [each.direction for each, _ in rows],
            "label": [each.labels[i] for each, i in rows],
        }
        for j, state in enumerate(self.states):
            columns[f"{self.beside or self.name}={state}"] = [
                float(each.values[i, j]) for each, i in rows
            ]
        return table_of(columns, self.library)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        lines = [self._heading(), *_aligned(self._cells())]
        if self.nearest:
            near = ", ".join(f"{name} ({bits:.3f})" for name, bits in self.nearest)
            lines.append(f"nearest hidden: {near}")
        return "\n".join(lines)

    def _heading(self) -> str:
        kind = "hidden" if self.hidden else "observed"
        kind += f", a vector, described by {self.beside} beside it" if self.beside else ""
        if not self.shares:
            return f"{self.name}, {kind}, a number"
        shown = [
            f"{share:.1%} in {state}" for state, share in zip(self.states, self.shares, strict=True)
        ][:SHOWN_STATES]
        return f"{self.name}, {kind}, {counted(len(self.shares), 'state')}: {', '.join(shown)}"

    def _cells(self) -> list[list[str]]:
        """Rows of the table as texts, labels and states beyond those shown left out."""
        shown = self.states[:SHOWN_STATES]
        if not self.related:
            return [["no other variable tells anything about it"]]
        rows = [["variable", "bits", "label", *(f"in {state}" for state in shown)]]
        for each in self.related:
            first = [marked(each.name, each.direction), f"{each.bits:.3f}"]
            for label, values in each.shown_rows():
                rows.append([*first, label, *(f"{x:.3g}" for x in values[: len(shown)])])
                first = ["", ""]
        return rows

    def _repr_html_(self) -> str:
        heading, *rows = self._cells()
        head = "".join(f"<th>{escape(cell)}</th>" for cell in heading)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
        )
        return f"<b>{escape(self._heading())}</b><table><tr>{head}</tr>{body}</table>"


def _aligned(rows: list[list[str]]) -> list[str]:
    """Rows as lines of a table: numbers to the right, variables and labels to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    left = (0, 2)
    return [
        "  "
        + "  ".join(
            cell.ljust(w) if i in left else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


# ---- how it is found ------------------------------------------------------------------


def describe(
    model: Any, channels: Channels, schema: Schema, node: int, n: int, library: str = "pandas"
) -> Description:
    """The description of a node by the n variables that tell most about it.

    A variable that is a vector is described by the hidden node beside it. A best-first search, and
    a product of matrices along the path to each variable."""
    tree, about = model.tree, node
    if node < tree.n_observed and channels.items_of(node) != [node]:
        about = channels.neighbor_of_leaf(channels.items_of(node)[0])
    reader = _Reader(model, channels, schema, about)
    variables, hidden = _most_related(channels, about, n, tree.n_observed, tree.n_nodes)
    return Description(
        tree.names[node],
        node >= tree.n_observed,
        "" if about == node else tree.names[about],
        reader.states,
        reader.shares,
        tuple(reader.related(*each) for each in variables),
        tuple((tree.names[h], bits) for h, bits, _ in hidden),
        library,
    )


_Found = list[tuple[int, float, int]]


def _most_related(
    channels: Channels, about: int, n: int, n_observed: int, n_nodes: int
) -> tuple[_Found, _Found]:
    """(node, bits, direction) of the variables and of the hidden nodes that tell most."""
    is_hidden = np.zeros(len(channels.kinds), dtype=bool)
    is_hidden[n_observed:n_nodes] = True
    if channels.kinds[about] == NUMBER:
        found = related_to_number(channels, about)
        return (
            [each for each in found if channels.is_item[each[0]]][:n],
            [each for each in found if is_hidden[each[0]]][:NEAREST],
        )
    rows: list[_Found] = []
    for wanted, size in ((channels.is_item, n), (is_hidden, NEAREST)):
        best = most_informative(channels, [about], size, wanted)
        known = zip(best.nodes[0], best.bits[0], best.directions[0], strict=True)
        rows.append([(int(v), float(b), int(d)) for v, b, d in known if v >= 0])
    return rows[0], rows[1]


class _Reader:
    """Reads distributions of variables given a node off the channels of a model."""

    def __init__(self, model: Any, channels: Channels, schema: Schema, about: int) -> None:
        self.model, self.channels, self.schema, self.about = model, channels, schema, about
        self.states: tuple[str, ...] = ()
        self.shares: tuple[float, ...] = ()
        if channels.kinds[about] == WHITENED:
            self.states = ("-1 sd", "+1 sd")
        elif channels.kinds[about] == STATES:
            hidden = about >= schema.n_vars
            labels = range(channels.dims[about]) if hidden else schema.labels[about].tolist()
            self.states = tuple(str(label) for label in labels)
            self.shares = tuple(channels.of_own(about).tolist())

    def related(self, node: int, bits: float, direction: int) -> Related:
        """A variable or coordinate with its distribution in each state."""
        name = item_name(self.schema, self.channels, node)
        if not self.states:
            return Related(name, bits, direction, ("",), np.empty((1, 0)))
        labels, values = self._values(node)
        return Related(name, bits, direction, labels, values)

    def _values(self, node: int) -> tuple[tuple[str, ...], Floats]:
        c = self.channels
        matrix = c.path_matrix(self._path(node))
        v, place = int(c.variables[node]), max(int(c.coordinates[node]), 0)
        if c.kinds[node] == WHITENED:
            mean, score = self.model.marginal(v)[place], c.score(self.about)
            size = float(np.linalg.norm(score))
            slope = float(matrix[0] @ score) / size if size > 0 else 0.0
            slope *= float(np.sqrt(self.model.variances(v)[place]))
            return ("mean",), np.array([[mean - slope, mean + slope]])
        if c.kinds[node] == NUMBER:
            means = self.model.emissions[v].value_moments()[0][place]
            middle = float(means @ self.model.marginals[self.model.parents[v]])
            return ("mean",), middle + matrix
        if c.coordinates[node] >= 0:
            return ("present",), matrix[1:]
        labels = tuple(str(label) for label in self.schema.labels[v].tolist())
        return (labels[1:], matrix[1:]) if len(labels) == 2 else (labels, matrix)

    def _path(self, node: int) -> list[int]:
        """From the node that is described."""
        tree = self.model.tree
        if node < tree.n_nodes:
            return list(tree.path(self.about, node))
        return [*tree.path(self.about, self.channels.neighbor_of_leaf(node)), node]
