"""`InterpretationMixin`: the estimator's methods that say what its hidden variables stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from latenttree.data.containers import library_of_tables
from latenttree.errors import check_option, is_count
from latenttree.interpretation.channels import Channels, known_channels
from latenttree.interpretation.descriptions import Description, describe
from latenttree.interpretation.naming import checked_names, names_by_words
from latenttree.interpretation.topics import Topics, topics_of
from latenttree.model.signs import ordered_variables
from latenttree.model.tree_model import TreeModel
from latenttree.queries import QueryMixin
from latenttree.queries.nodes import Node
from latenttree.report import Diagnostics, states_summary
from latenttree.tree import Tree


class InterpretationMixin(QueryMixin):
    """What hidden variables stand for; a base of the estimator, with those that query it."""

    tree_: Tree
    diagnostics_: Diagnostics

    def describe(self, node: Node, n: int = 10) -> Description:
        """What a node stands for: the share of samples in each of its states, and the `n` variables
        that tell most about it, near or far, by their mutual information with it in bits, with
        their probabilities or means in each state.

        A higher state has more of the variables without the mark "(-)", less of the others. The
        result prints as text, shows as HTML in notebooks, and has a DataFrame, `table`."""
        v = self._node(node)
        check_option("n", n, is_count(n), "pass a whole number from 1 on")
        channels = self._channels()
        return describe(self.model_, channels, self.schema_, v, n, library_of_tables(self))

    def topics(self, n_words: int = 10, level: int | Sequence[int] | None = None) -> Topics:
        """The hidden variables to read a model by, each with the variables that tell most about it,
        at levels of detail that nest: topics of words, scales of a questionnaire, syndromes.

        Parameters
        ----------
        n_words : variables listed for each topic at most.
        level : number of topics, or several numbers; None for 10, 50 and 200 as far as there are
            12 variables for each, and one for every five variables where there are less.

        Returns
        -------
        Topics : prints as text, shows as HTML in notebooks, and has the DataFrames `table` (a row
            for each topic) and `words`."""
        self._check_model()
        return topics_of(
            self.tree_,
            self._channels(),
            self.schema_,
            n_words,
            level,
            library=library_of_tables(self),
            n_jobs=self._threads(),
        )

    def name(self, node: Node, name: str) -> Self:
        """Give a hidden node another name, in the tree, the model, the report, all answers and all
        files written from now on. A name must be unique; `fit` forgets it."""
        v = self._node(node)
        return self._with_tree(checked_names(self.tree_, {v: name}))

    def name_hidden(self, n_words: int = 2) -> Self:
        """Name all hidden nodes by the `n_words` variables that tell most about them, as
        "network/neural"; where several would have the same name by more of them."""
        self._check_model()
        check_option("n_words", n_words, is_count(n_words), "pass a whole number from 1 on")
        found = names_by_words(self.tree_, self._channels(), self.schema_, n_words, self._threads())
        return self._with_tree(checked_names(self.tree_, found))

    def _with_tree(self, tree: Tree) -> Self:
        """Take a tree that differs in names of hidden nodes only."""
        old, new = self.model_, self.model_.renamed(tree)
        if isinstance(old, TreeModel):  # sentences that name hidden nodes
            sentences = dict(zip(states_summary(old), states_summary(new), strict=True))
            messages = self.diagnostics_.messages
            self.diagnostics_.messages = [sentences.get(text, text) for text in messages]
        self.tree_, self.model_ = tree, new
        return self

    def _channels(self) -> Channels:
        model, schema = self.model_, self.schema_
        ordered = ordered_variables(schema.families, schema.dims)
        return known_channels(model, ordered)
