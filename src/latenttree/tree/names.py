"""Names of nodes: checks, and names for hidden nodes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from latenttree.errors import DataError

HIDDEN_PREFIXES = ("h", "hidden", "_hidden")


def hidden_names(observed: Sequence[str], n_hidden: int) -> tuple[str, ...]:
    """``h0, h1, ...``, with another prefix where an observed name is ``h`` and a number."""
    taken = [name for name in observed if name[-1:].isdigit()]
    prefix = next(
        (c for c in HIDDEN_PREFIXES if not any(re.fullmatch(rf"{c}\d+", n) for n in taken)),
        "_" * (1 + max((len(name) for name in taken), default=0)),
    )
    return tuple(f"{prefix}{i}" for i in range(n_hidden))


def check_node_names(names: tuple[str, ...]) -> None:
    """Raise where a name is no string, or is used twice."""
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong:
        raise TypeError(f"node name {wrong[0]!r} is {type(wrong[0]).__name__}; names are strings")
    if len(set(names)) == len(names):
        return
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DataError(
                f"the name {name!r} is used more than once", "make names unique", node=name
            )
        seen.add(name)


def check_same_names(names: tuple[str, ...], given: tuple[str, ...]) -> None:
    """Raise where `given` is not a permutation of `names`."""
    if len(names) == len(given) and set(names) == set(given):
        return
    wanted, known = set(given), set(names)
    missing = [name for name in names if name not in wanted]
    unknown = [name for name in given if name not in known]
    raise DataError(
        f"the tree has {len(names)} observed nodes, {len(given)} names were given: "
        f"missing {missing[:5]}, unknown {unknown[:5]}",
        "pass each observed name once",
        value=given,
    )
