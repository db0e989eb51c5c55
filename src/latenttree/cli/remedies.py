"""Errors and notes of the library, in the words of the command line."""

from __future__ import annotations

import ast
import re
import shlex

_FAMILIES = re.compile(r"family=(\{[^{}]*\})")

# Patterns, in this order, and what is written for them.
_WORDS = (
    (r"drop_constant=True", "--drop-constant"),
    (r"drop_constant=", "--drop-constant"),
    (r"like an identifier; drop it,", "like an identifier; leave it out by --ignore NAME,"),
    (r"family='(\w+)'", r"--family \1"),
    (r"replace it by NaN or None", "empty the cell"),
    (r"make the column categorical or string", "write it as a word"),
    (r"scores=True", "--hidden gaussian"),
    (r"outside codes=", "that the model does not know"),
    (r" of samples that are not in all_samples", " of other samples"),
    (r"(roll_up|groups) is a map", r"--\1 is a map"),
    (r"vocab and names both", "--vocab and the file both"),
    (r", or a matrix with groups", ""),
    (r"pass vocab=? or names=?", "pass --vocab FILE"),
    (r"at least min_support=(\d+)", r"at least \1"),
    (r"lower min_support", "lower --min-count"),
    (r"; pass all_samples to keep them", ""),
    (r"fewer than min_support=(\d+)", r"fewer than \1"),
    (r"(roll_up|groups)=\(table, column of codes, column of targets\)", r"--\1 FILE:CODE:TARGET"),
    (r"the map (roll_up|groups)", r"the map --\1"),
    (r"(^|: )(since|until)=", r"\1--\2 "),
    (r"(^|: )groups has", r"\1--groups has"),
    (r"pass (since|until) as one of these", r"pass --\1 as one of these"),
    (r"since and until need one; pass time", "--since and --until need one; pass --time"),
    (r"\((sample|code|time)\)", r"(--\1)"),
    (r"pass (sample|code) with", r"pass --\1 with"),
    (r"use roll_up for", "use --roll-up for"),
    (r"--roll_up", "--roll-up"),
    (r"; if these are proteins, pass alphabet='protein'", ""),
    (r"pass delimiter='\\t'", "pass --delimiter tab"),
    (r"pass delimiter=", "pass --delimiter "),
    (r"sample_weight of row (\d+)", r"the weight of row \1"),
    (r"weights names", "--weights names"),
    (r"hidden='(\w+)'", r"--hidden \1"),
    (r"n_states=", "--states "),
    (r"lower n_states", "lower --states"),
    (r"raise max_iter", "raise --max-iter"),
    (r"rename the columns or pass names=?", "rename the columns"),
    (
        r"Convert whole numbers to integers .*? as a list of blocks",
        "Write whole numbers without a decimal point, and put others into classes first",
    ),
)


def in_words(text: str) -> str:
    """A text of the library in the words of the command line."""
    text = _FAMILIES.sub(_family_options, text)
    for pattern, words in _WORDS:
        text = re.sub(pattern, words, text)
    return text


def _family_options(found: re.Match[str]) -> str:
    """``family={'age': 'poisson'}`` as ``--family age=poisson``; what cannot be read stays."""
    try:
        families = ast.literal_eval(found[1])
    except (ValueError, SyntaxError):
        return found[0]
    return " ".join(f"--family {shlex.quote(f'{c}={name}')}" for c, name in families.items())
