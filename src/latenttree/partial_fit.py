"""`PartialFitMixin`: learning from batches, for an estimator that `fit`s all samples at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from sklearn.exceptions import NotFittedError

from latenttree.data.batches import Batches

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
"""Attributes that are learned from the batches when they are first accessed."""


class PartialFitMixin:
    """`partial_fit` and `finalize`; learned attributes are computed on first access.

    Samples are stored until then, see `Batches`: EM and the search pass over them repeatedly, so
    sums alone would not give the tree that `fit` gives."""

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add a batch of samples; `y` is ignored.

        Nothing is learned yet: `finalize`, or the first access to the tree, the model or an answer,
        learns what `fit` learns on all batches together. More batches may follow after that.
        Samples of an earlier `fit` are not included, and a later `fit` discards all batches.

        All batches are of one kind of container with the same columns (matched by name for a
        DataFrame or dict), each with at least one row. A batch that does not match is refused and
        changes nothing. A copy of each batch is stored in its own types, as large as the batch
        itself (give integers as int8, and text as categories, to store less), and while they are
        joined all samples are in memory twice."""
        batches = vars(self).get("_batches")
        if batches is None:
            batches = Batches()
        batches.add(X, sample_weight)
        self._batches = batches
        for name in _learned(self):
            delattr(self, name)
        return self

    def finalize(self) -> Self:
        """Learn from all batches so far, unless that has been done."""
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
        """Whether there are batches that have not been learned from."""
        batches = vars(self).get("_batches")
        return batches is not None and batches.n_batches != vars(self).get("_n_learned", 0)

    def _forget_batches(self) -> None:
        """Discard all batches; `fit` calls this before it sets attributes."""
        vars(self).pop("_batches", None)
        vars(self).pop("_n_learned", None)

    def __sklearn_is_fitted__(self) -> bool:
        return "tree_" in vars(self) or self._waits()

    def _html_repr(self) -> str:
        """The HTML of the estimator without batches, because scikit-learn would ask a fitted one
        for its features, and displaying it in a notebook must not start learning."""
        own: Any = self
        shown = type(own)(**own.get_params(deep=False)) if self._waits() else own
        bare: Any = super(PartialFitMixin, shown)
        return str(bare._html_repr())

    if not TYPE_CHECKING:  # mypy would take every name for an attribute

        def __getattr__(self, name: str) -> Any:
            """Called for missing attributes: learned ones are computed here."""
            if name in LEARNED and self._waits():
                try:
                    self.finalize()
                except AttributeError as error:  # would be taken for "no such attribute"
                    raise RuntimeError(f"learning from batches failed: {error}") from error
                if name in vars(self):
                    return vars(self)[name]
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def _learned(estimator: Any) -> list[str]:
    """Names of the attributes that `fit` has set."""
    return [name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")]
