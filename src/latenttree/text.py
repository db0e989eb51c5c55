"""Text: words of a corpus, with their names, for a pipeline.

>>> from sklearn.pipeline import make_pipeline
>>> import latenttree as lt
>>> pipeline = make_pipeline(lt.text.Words(), lt.LatentTree())
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.utils.validation import check_is_fitted


class Words(BaseEstimator):
    """Which words each document has, as a sparse matrix that knows the words.

    A vectorizer of scikit-learn gives a matrix without names, and a step of a pipeline sees no more
    than that. `Words` writes 1 where a document has a word, whatever its count or weight, and hands
    the words on as the attribute `feature_names` of the matrix, where `LatentTree` finds them.

    Parameters
    ----------
    vectorizer : a vectorizer; `CountVectorizer()` if None. It is copied and fitted.

    Attributes
    ----------
    vectorizer_ : the fitted vectorizer.

    Examples
    --------
    >>> found = Words(CountVectorizer(stop_words="english")).fit_transform(["a cat", "the cat sat"])
    >>> found.toarray().tolist(), found.feature_names
    ([[1, 0], [1, 1]], ['cat', 'sat'])
    """

    vectorizer_: Any

    def __init__(self, vectorizer: Any = None) -> None:
        self.vectorizer = vectorizer

    def fit(self, documents: Any, y: Any = None) -> Words:
        """Learn the words of the documents; `y` is ignored."""
        self.fit_transform(documents)
        return self

    def fit_transform(self, documents: Any, y: Any = None) -> Any:
        """Learn the words of the documents, and return which has which; `y` is ignored."""
        self.vectorizer_ = CountVectorizer() if self.vectorizer is None else clone(self.vectorizer)
        return self._named(self.vectorizer_.fit_transform(documents))

    def transform(self, documents: Any) -> Any:
        """(n documents, n words) CSR of ones, with the words as `feature_names`."""
        check_is_fitted(self, "vectorizer_")
        return self._named(self.vectorizer_.transform(documents))

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """The words, in the order of the columns."""
        check_is_fitted(self, "vectorizer_")
        return self.vectorizer_.get_feature_names_out()

    def _named(self, matrix: Any) -> Any:
        found = sparse.csr_array(matrix)
        found.eliminate_zeros()
        found.data = np.ones(found.nnz, dtype=np.int8)
        found.feature_names = self.get_feature_names_out().tolist()
        return found
