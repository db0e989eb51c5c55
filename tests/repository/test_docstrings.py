"""Docstrings: the examples give what they say, and the names in them exist."""

from __future__ import annotations

import ast
import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

import latenttree

SOURCE = Path(__file__).parents[2] / "src"
WITH_EXAMPLES = sorted(
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for path in SOURCE.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf8")
)


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_examples(module: str) -> None:
    found = doctest.testmod(import_module(module))
    assert found.attempted > 0
    assert found.failed == 0


# ---- names in docstrings --------------------------------------------------------------

PACKAGE = SOURCE / "latenttree"
DOTTED = re.compile(r"`((?:[A-Za-z_]\w*)(?:\.\w+)+)")
NOT_MODULES = {"tree", "model", "query", "pgmpy"}  # as a rule a parameter, or another package
ENDINGS = {"py", "json", "npz", "txt"}


def definitions(body: list[ast.stmt], with_imports: bool) -> set[str]:
    """Names that statements of a module or a class define; methods may define more on `self`."""
    names: set[str] = set()
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            names |= {leaf.id for leaf in ast.walk(node) if isinstance(leaf, ast.Name)}
        elif with_imports and isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.If):
            names |= definitions(node.body, with_imports)
    return names


def attributes(node: ast.ClassDef) -> set[str]:
    on_self = {
        leaf.attr
        for leaf in ast.walk(node)
        if isinstance(leaf, ast.Attribute)
        and isinstance(leaf.value, ast.Name)
        and leaf.value.id == "self"
    }
    return definitions(node.body, False) | on_self


def known_names() -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """What every module and every class holds, by its dotted name and by its name."""
    modules: dict[str, set[str]] = {}
    classes: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        body = ast.parse(path.read_text(encoding="utf8")).body
        parts = [*path.relative_to(SOURCE).with_suffix("").parts]
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        modules.setdefault(name, set()).update(definitions(body, is_package))
        if "." in name:
            parent, _, stem = name.rpartition(".")
            modules.setdefault(parent, set()).add(stem)
        for node in body:
            if isinstance(node, ast.ClassDef):
                classes.setdefault(node.name, set()).update(attributes(node))
    modules["latenttree"] |= set(latenttree.__all__)
    return modules, classes


MODULES, CLASSES = known_names()


def is_stale(name: str) -> bool:
    """Whether a dotted name starts with a module or class of the package and does not resolve."""
    parts = name.split(".")
    if parts[0] in CLASSES:
        return parts[1] not in CLASSES[parts[0]]
    if parts[0] in NOT_MODULES or parts[-1] in ENDINGS:
        return False
    starts = [m for m in MODULES if f".{m}".endswith(f".{parts[0]}")]
    return bool(starts) and not any(resolves(start, parts[1:]) for start in starts)


def resolves(module: str, parts: list[str]) -> bool:
    if not parts:
        return True
    if f"{module}.{parts[0]}" in MODULES:
        return resolves(f"{module}.{parts[0]}", parts[1:])
    if parts[0] not in MODULES[module]:
        return False
    return len(parts) == 1 or parts[0] not in CLASSES or parts[1] in CLASSES[parts[0]]


def test_dotted_names_in_docstrings_exist() -> None:
    stale = [
        f"{path.relative_to(PACKAGE)}: {name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for name in DOTTED.findall(path.read_text(encoding="utf8"))
        if is_stale(name)
    ]
    assert not stale


@pytest.mark.parametrize(
    ("name", "stale"),
    [
        ("latenttree.data.values.Values", False),
        ("data.values.Values", False),
        ("values.Values.take", False),
        ("Values.take", False),
        ("numpy.unique", False),
        ("data.values.Nothing", True),
        ("data.nowhere", True),
        ("Values.nothing", True),
        ("latenttree.data.table.Values", True),
    ],
)
def test_the_checker_of_names(name: str, stale: bool) -> None:
    assert is_stale(name) == stale
