"""`PageMixin`: the method of the estimator that writes a page to share."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sklearn.utils.validation import check_is_fitted

from latenttree.data.checks import listing
from latenttree.errors import DataError, check_option
from latenttree.interpretation.mixin import InterpretationMixin
from latenttree.io.atomic import check_target, replacing
from latenttree.page.about import about_html, edge_key
from latenttree.page.columns import MapColumn, read_columns
from latenttree.page.content import known_parts, own_columns, telling, tree_parts
from latenttree.page.document import document
from latenttree.page.layout import map_layout
from latenttree.page.levels import map_levels
from latenttree.phrases import counted
from latenttree.plots.layout import rooted_layout

TOPIC = "topic"
"""What `color_by` calls the colours by topic."""


class PageMixin(InterpretationMixin):
    """Writes a fitted model as a web page; a base of the estimator."""

    def to_html(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        color_by: Any = None,
        columns: Any = None,
        title: str | None = None,
        levels: int | Sequence[int] | None = None,
    ) -> str | None:
        """A web page with a map of the whole tree: search, neighbourhoods, topics, all conditional
        tables. One file that loads nothing from a network and opens from a mail.

        Parameters
        ----------
        path : file to write; None returns the text of the page.
        color_by : what colours the variables at first: "topic" (default), the name of one of the
            `columns`, or values: a dict or Series from variables to labels or numbers, or a
            sequence in the order of the variables.
        columns : more values to colour by, which the page lists: a DataFrame with the names of the
            variables in its index or in a column, or a dict of dicts by name. Variables without a
            value are grey.
        title : of the page.
        levels : numbers of topics, one for each level of detail, as `topics(level=...)`.
        """
        check_is_fitted(self, "tree_")
        check_option("title", title, title is None or isinstance(title, str), "pass a text")
        if path is not None:
            problem = "the name {} is not that of a web page"
            check_target(path, (".html", ".htm"), problem, "end it in .html")
        tree = self.tree_
        first, shown = self._map_columns(color_by, columns)
        text = document(
            title or f"Latent tree of {counted(tree.n_observed, 'variable')}",
            about_html(tree, self.diagnostics_),
            edge_key(tree),
            self._map_content(levels) | {"columns": list(map(asdict, shown)), "color_by": first},
        )
        if path is None:
            return text
        with replacing(path) as partial:
            partial.write_text(text, encoding="utf8", errors="replace")
        return None

    def _map_content(self, levels: int | Sequence[int] | None) -> dict[str, Any]:
        """What the page knows of the tree, all but the columns."""
        tree, schema, model = self.tree_, self.schema_, getattr(self, "model_", None)
        places, parents = map_layout(tree), rooted_layout(tree).parents
        content = tree_parts(tree, places, parents)
        content |= known_parts(tree, schema, model, parents, self.diagnostics_.fit)
        if model is None or not tree.n_hidden:
            return content | {"telling": [], "levels": []}
        found = telling(tree, schema, self._channels(), self._threads())
        topics = self.topics(level=levels)
        return content | {"telling": found, "levels": map_levels(tree, topics, places)}

    def _map_columns(self, color_by: Any, columns: Any) -> tuple[int, list[MapColumn]]:
        """The place of the column that is shown at first, -1 for topics, and all columns."""
        names = self.tree_.observed_names
        found = [] if columns is None else read_columns(columns, names)
        if color_by is not None and not isinstance(color_by, str):
            found, color_by = read_columns(color_by, names, "color_by") + found, None
            first: int = 0
        else:
            first = -1
        found += own_columns(self.tree_, self.schema_, getattr(self, "model_", None))
        if color_by is None or color_by == TOPIC:
            return first, found
        known = [column.name for column in found]
        if color_by not in known:
            raise DataError(
                f"color_by is {color_by!r}, and there is no such column",
                f"choose of {listing([TOPIC, *known])}, or pass values by variable",
                value=color_by,
                option="color_by",
            )
        return known.index(color_by), found
