"""Data flows one way: a module imports only from modules before it in ORDER."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import latenttree

SOURCE = Path(__file__).parents[2] / "src" / "latenttree"

# A room (a package or a module at the top level) may import from itself and from the rooms before
# it.
ORDER = (
    "errors",
    "tree",
    "engine",
    "config",
    "data",
    "moments",
    "distances",
    "structure",
    "model",
    "parameters",
    "refinement",
    "search",
    "report",
    "queries",
    "evaluation",
    "io",
    "plots",
    "compilation",
    "partial_fit",
    "estimator",
    "cli",
)

# (module, what it imports): why.
EXCEPTIONS: dict[tuple[str, str], str] = {}


def imports_of(path: Path) -> set[str]:
    """First-level names below ``latenttree`` that a file imports, anywhere in it.

    ``latenttree`` itself stands for the facade. Imports inside functions and under
    TYPE_CHECKING count too.
    """
    return {name for node in ast.walk(ast.parse(path.read_text())) for name in targets(node, path)}


def targets(node: ast.AST, path: Path) -> list[str]:
    if isinstance(node, ast.Import):
        dotted = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        base = absolute(node, path)
        dotted = [base]
        if base == "latenttree":  # `from latenttree import metrics` imports a module
            dotted = [f"latenttree.{alias.name}" for alias in node.names]
    else:
        return []
    parts = [name.split(".") for name in dotted]
    return [p[1] if len(p) > 1 else "latenttree" for p in parts if p[0] == "latenttree"]


def absolute(node: ast.ImportFrom, path: Path) -> str:
    """Dotted name of the module in `from ... import`, relative ones resolved."""
    if node.level == 0:
        return node.module or ""
    package = ("latenttree", *path.relative_to(SOURCE).parent.parts)
    kept = package[: len(package) - (node.level - 1)]
    return ".".join([*kept, *(node.module or "").split(".")]).rstrip(".")


def modules() -> list[Path]:
    return sorted(p for p in SOURCE.rglob("*.py") if p != SOURCE / "__init__.py")


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def test_every_module_has_its_place() -> None:
    missing = {name_of(path) for path in modules()} - set(ORDER)
    assert not missing, f"add {sorted(missing)} to ORDER, after all that they import"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_one_way(path: Path) -> None:
    own = name_of(path)
    allowed = {*ORDER[: ORDER.index(own) + 1], *(t for s, t in EXCEPTIONS if s == own)}
    if own == "cli":
        allowed.add("__version__")
    wrong = imports_of(path) - allowed
    assert not wrong, f"{path.relative_to(SOURCE)} imports {sorted(wrong)}, which come after it"


def test_exceptions_are_still_needed() -> None:
    used = {(name_of(path), target) for path in modules() for target in imports_of(path)}
    assert set(EXCEPTIONS) <= used


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import latenttree.io.graphml", {"io"}),
        ("from latenttree.io import graphml", {"io"}),
        ("from latenttree import metrics, io", {"metrics", "io"}),
        ("import latenttree", {"latenttree"}),
        ("def f():\n    from latenttree.cli import app", {"cli"}),
        ("from . import table", {"data"}),
        ("from ..io.graphml import to_graphml", {"io"}),
        ("from .. import metrics", {"metrics"}),
        ("import numpy, latenttreeish", set()),
    ],
)
def test_the_checker_sees_every_form_of_import(code: str, found: set[str]) -> None:
    inside = SOURCE / "data" / "somewhere.py"
    assert {name for node in ast.walk(ast.parse(code)) for name in targets(node, inside)} == found


# ---- the facade -----------------------------------------------------------------------


def loaded_after(code: str) -> set[str]:
    """Top-level modules in a fresh interpreter after ``code``."""
    script = f"{code}\nimport sys\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


HEAVY = {"matplotlib", "numba", "numpy", "pandas", "polars", "scipy", "sklearn"}


def test_import_loads_nothing_heavy() -> None:
    assert not loaded_after("import latenttree") & HEAVY


def test_command_line_loads_nothing_heavy() -> None:
    assert not loaded_after("import latenttree.cli") & HEAVY


def test_tree_alone_needs_no_more_than_numpy() -> None:
    assert not loaded_after("import latenttree; latenttree.Tree") & (HEAVY - {"numpy"})


def test_every_public_name_loads_and_is_listed() -> None:
    for name in latenttree.__all__:
        assert getattr(latenttree, name) is not None
        assert name in dir(latenttree)


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = latenttree.nothing
