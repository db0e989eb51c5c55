"""Phrases that reports and the command line share: numbers of states, supports, lists of names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

SUPPORTS = {
    "subsample": "chance to come back in other samples, by {} trees of random thirds",
    "bootstrap": "share of {} trees of bootstrap samples",
    "model": "posterior probability",
}
"""What the support of an edge is, by its method."""


def counted(n: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "edge"), counted(1200, "edge")
    ('1 edge', '1,200 edges')
    """
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def sizes_in_words(sizes: Iterable[int], noun: str = "state") -> str:
    """Numbers of states, or dimensions, of hidden variables.

    >>> sizes_in_words([2, 2]), sizes_in_words([4, 16, 9]), sizes_in_words([1], "dimension")
    ('2 states', '4 to 16 states', '1 dimension')
    """
    own = sorted({int(size) for size in sizes})
    if not own:
        return ""
    return counted(own[0], noun) if len(own) == 1 else f"{own[0]} to {own[-1]} {noun}s"


def support_in_words(method: str, n_resamples: int) -> str:
    """What the support of an edge is; empty where the method is unknown or there is none.

    >>> support_in_words("bootstrap", 25)
    'share of 25 trees of bootstrap samples'
    """
    return SUPPORTS.get(method, "").format(n_resamples)


def supports_in_words(values: Iterable[float], method: str, n_resamples: int) -> str:
    """The supports of inner edges, in a line; empty where none is known to be above 0."""
    known = [value for value in values if value > 0]
    if not known:
        return ""
    what = support_in_words(method, n_resamples)
    return (
        f"support of {counted(len(known), 'internal edge')}{what and f' ({what})'}: "
        f"median {median(known):.2f}, weakest {min(known):.2f}"
    )


def listed(names: Sequence[str], most: int) -> str:
    """Names in a sentence, `most` of them and the number of the others.

    >>> listed(["a"], 3), listed(["a", "b"], 3), listed(["a", "b", "c", "d", "e"], 3)
    ('a', 'a and b', 'a, b, c and 2 others')
    """
    left = len(names) - most
    shown = [*names] if left <= 0 else [*names[:most], counted(left, "other")]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
