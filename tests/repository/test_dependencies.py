"""What pyproject.toml declares is what the sources import, from a version that is tested."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

from tools.lower_bounds import lower_bounds, numbers

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OPTIONAL = {"anndata", "matplotlib", "networkx", "openpyxl", "pandas", "polars", "pyarrow"}
"""Imported where they are asked for, with an error that says how to install them."""


def modules_imported() -> set[str]:
    """Top-level modules that any file of the package imports, the standard library's left out."""
    found = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add(str(node.module))
    return {name.split(".")[0] for name in found} - set(sys.stdlib_module_names) - {"latenttree"}


def test_dependencies_are_what_is_imported() -> None:
    """llvmlite is a part of Numba, which fixes its version."""
    names = {re.split("[<>=~]", line)[0] for line in PROJECT["dependencies"]}
    declared = {"sklearn" if name == "scikit-learn" else name for name in names}
    imported = modules_imported()
    assert declared <= imported, "declared, and nothing imports it"
    assert imported - declared <= OPTIONAL | {"llvmlite"}, "imported, and not declared"


def test_every_dependency_has_a_lower_bound_that_is_tested() -> None:
    bounds = lower_bounds()
    extras = PROJECT["optional-dependencies"]
    for line in [*PROJECT["dependencies"], *extras["plot"]]:
        name, bound = line.split(">=")
        assert numbers(bounds[name]) >= numbers(bound)


def test_the_greatest_of_several_bounds_counts(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text(
        '[project]\ndependencies = ["a>=1.9", "b>=2"]\n'
        '[project.optional-dependencies]\nplot = ["a>=1.10"]\ntest = ["c~=3.1", "b>=1"]\n'
    )
    assert lower_bounds(file) == {"a": "1.10", "b": "2"}
