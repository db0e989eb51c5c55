"""Texts of the library in the words of the command line."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import latenttree
from latenttree.cli.commands import Fit
from latenttree.cli.options import flat_parameters
from latenttree.cli.wording import (
    FLAGS,
    PHRASES,
    SPECIAL,
    error_in_words,
    in_words,
    words,
)
from latenttree.errors import DataError, Option, Phrase, Text

SOURCE = Path(latenttree.__file__).parent


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        (Option("n_states"), "--states"),
        (Option("n_states", 3), "--states 3"),
        (Option("n_states", "auto"), "--states auto"),
        (Option("support", "model"), "--support model"),
        (Option("n_resamples", 5), "--resamples 5"),
        (Option("drop_constant", True), "--drop-constant"),
        (Option("search", False), "--no-search"),
        (Option("refine", None), "--no-refine"),
        (Option("refine", "em"), "--refine"),
        (Option("family", {"age": "poisson"}), "--family age=poisson"),
        (Option("family", {"a": "x", "b": "y"}), "--family a=x --family b=y"),
        (Option("family", {"his kids'": "poisson"}), "--family 'his kids'\"'\"'=poisson'"),
        (Option("ignore", ["id", "first seen"]), "--ignore id --ignore 'first seen'"),
        (Option("delimiter", ";"), "--delimiter ';'"),
        (Option("delimiter", "\t"), "--delimiter tab"),
        (Option("scores", True), "--hidden gaussian"),
        (Option("names"), "names"),
        (Option("alphabet", "protein"), "alphabet='protein'"),
    ],
)  # fmt: skip
def test_options_are_flags(option: Option, expected: str) -> None:
    assert words(option) == expected


def test_phrases_are_found_by_their_keys() -> None:
    assert words(Phrase("mark missing", "replace it by NaN or None")) == "empty the cell"
    assert words(Phrase("no such key", "as it is")) == "as it is"


def test_an_error_is_rendered_from_its_fields() -> None:
    error = DataError(
        "column 'age' has one value (42)\nin all 500 rows",
        Text("drop it or pass ", Option("drop_constant", True)),
    )
    expected = "column 'age' has one value (42) in all 500 rows; drop it or pass --drop-constant"
    assert error_in_words(error) == expected
    assert str(error).endswith("drop it or pass drop_constant=True")


def test_a_remedy_that_the_command_line_lacks_is_left_out() -> None:
    error = DataError("'1' is no nucleotide", Text(Phrase("try protein", "pass alphabet=...")))
    assert error_in_words(error) == "'1' is no nucleotide"


def test_errors_of_others() -> None:
    assert error_in_words(ValueError("what\n and why")) == "what and why"
    assert error_in_words(MemoryError()) == "MemoryError"
    assert error_in_words(FileNotFoundError(2, "No such file", "x.csv")) == "x.csv: No such file"


def test_notes() -> None:
    assert in_words("as it is") == "as it is"
    assert in_words(Text("raise ", Option("max_iter"))) == "raise --max-iter"


# ---- all that the library says --------------------------------------------------------

LIBRARY_ONLY = {
    "all_samples",
    "codes",
    "distances",
    "keep_distances",
    "labels",
    "max_depth",
    "n_dims",
    "names",
    "positions",
    "scratch",
    "shape",
    "standard_errors",
    "structure",
    "style",
}
"""Parameters that only Python has."""


def first_arguments(name: str) -> Iterator[tuple[str, str]]:
    """First arguments that are literal strings of all calls `name(...)` in the sources, and the
    files that they stand in."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", None) == name and node.args:
                value = getattr(node.args[0], "value", None)
                if isinstance(value, str):
                    yield value, str(path.relative_to(SOURCE))


def test_every_option_is_known_to_the_command_line_or_declared() -> None:
    known = {*FLAGS, *LIBRARY_ONLY, *(name for name, _ in SPECIAL)}
    unknown = {(name, file) for name, file in first_arguments("Option") if name not in known}
    assert not unknown, "add them to FLAGS in cli/wording.py, or to LIBRARY_ONLY here"
    assert not set(FLAGS) & LIBRARY_ONLY


def test_every_phrase_has_words() -> None:
    used = {key for key, _ in first_arguments("Phrase")}
    assert used == set(PHRASES)


def test_flags_exist() -> None:
    """Every flag is one of some command."""
    from typer.main import get_command

    from latenttree.cli import app

    commands = get_command(app).commands.values()  # type: ignore[attr-defined]
    flags = {
        flag
        for command in commands
        for p in command.params
        for flag in (*p.opts, *p.secondary_opts)
    }
    assert set(FLAGS.values()) <= flags


def test_fit_has_an_option_for_each_field() -> None:
    names = [parameter.name for parameter in flat_parameters(Fit)]
    assert names[:3] == ["file", "out", "states"]
    assert {"min_support", "family", "plot", "roll_up", "binary", "verbose"} <= set(names)
