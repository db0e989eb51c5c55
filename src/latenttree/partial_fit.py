"""`Batchwise`: learning from batches, for estimators that `fit` all samples at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from sklearn.exceptions import NotFittedError

from latenttree.data.batches.batches import Batches

LEARNED = (
    "tree_",
    "model_",
    "diagnostics_",
    "schema_",
    "n_iter_",
    "n_features_in_",
    "feature_names_in_",
    "distances_",
)
"""Attributes that are there as soon as somebody asks for them."""


class Batchwise:
    """`partial_fit` and `finalize` of an estimator, whose learned attributes appear when needed.

    Samples are kept until then, see `latenttree.data.batches.Batches`: refinement and the search
    for the best tree pass over them again and again, so sums alone would give another tree."""

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add a batch of samples; `y` is ignored.

        Nothing is learned yet: that happens in `finalize`, or when the tree, the model or an answer
        is first asked for, and gives what `fit` gives on all batches together. More batches may
        follow then; samples of an earlier `fit` are not among them, and a later `fit` forgets all
        batches.

        The batches are of one kind of container with the same columns (those of a DataFrame or
        dict by name), each of one row or more. A batch that does not fit is refused and changes
        nothing. Kept of each is a copy, in bytes for each value: 1 for a boolean, 1 to 8 for an
        integer as its size needs, 1 to 4 for text or a category, 4 or 8 for a float as it came, 4
        and that of its value for each stored value of a sparse matrix."""
        batches = vars(self).get("_batches")
        if batches is None:
            batches = Batches()
        batches.add(X, sample_weight)
        self._batches = batches
        for name in _learned(self):
            delattr(self, name)
        return self

    def finalize(self) -> Self:
        """Learn from all batches so far, unless that is done."""
        if not self._waits():
            if "tree_" in vars(self):
                return self
            raise NotFittedError(f"{type(self).__name__} has no batches; call partial_fit first")
        n, (X, weights) = self._batches.n_batches, self._batches.joined()
        # A second estimator learns: a failure leaves this one as it is, with its batches.
        own: Any = self
        fresh = type(own)(**own.get_params(deep=False)).fit(X, sample_weight=weights)
        vars(self).update({name: getattr(fresh, name) for name in _learned(fresh)})
        self._n_learned = n
        return self

    def _waits(self) -> bool:
        """Whether there are batches that nothing was learned from."""
        batches = vars(self).get("_batches")
        return batches is not None and batches.n_batches != vars(self).get("_n_learned", 0)

    def _forget_batches(self) -> None:
        """For `fit`, before it sets anything."""
        vars(self).pop("_batches", None)
        vars(self).pop("_n_learned", None)

    def __sklearn_is_fitted__(self) -> bool:
        return "tree_" in vars(self) or self._waits()

    def _html_repr(self) -> str:
        """Looking at an estimator, as notebooks do at the end of a cell, learns nothing: while
        batches wait it is shown without them. (scikit-learn asks a fitted one for its features.)"""
        own: Any = self
        shown = type(own)(**own.get_params(deep=False)) if self._waits() else own
        bare: Any = super(Batchwise, shown)
        return str(bare._html_repr())

    if not TYPE_CHECKING:  # or every name would be an attribute to mypy

        def __getattr__(self, name: str) -> Any:
            """Called for what is not there: learned attributes come about here."""
            if name in LEARNED and self._waits():
                try:
                    self.finalize()
                except AttributeError as error:  # would be taken for "no such attribute"
                    raise RuntimeError(f"learning from batches failed: {error}") from error
                if name in vars(self):
                    return vars(self)[name]
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def _learned(estimator: Any) -> list[str]:
    """Names of what `fit` has set."""
    return [name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")]
