"""Data flow one way: a module imports only from rooms before its own, and never in a circle."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import networkx as nx
import pytest

import latenttree

SOURCE = Path(__file__).parents[2] / "src" / "latenttree"

# A room (a package or a module at the top level) may import from itself and from the rooms before
# it.
ORDER = (
    "errors",
    "phrases",
    "tree",
    "engine",
    "config",
    "data",
    "text",
    "moments",
    "distances",
    "structure",
    "model",
    "parameters",
    "refinement",
    "search",
    "goodness_of_fit",
    "report",
    "queries",
    "tables",
    "interpretation",
    "evaluation",
    "io",
    "plots",
    "page",
    "compilation",
    "partial_fit",
    "estimator",
    "cli",
)


def modules() -> dict[str, Path]:
    """The file of every module by its dotted name."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = ["latenttree", *path.relative_to(SOURCE).with_suffix("").parts]
        found[".".join(parts).removesuffix(".__init__")] = path
    return found


MODULES = modules()


def imported(code: str) -> set[str]:
    """Modules of the package that code imports: at the top, in functions, under TYPE_CHECKING."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            found.update(name if name in MODULES else str(node.module) for name in inside)
    return {name for name in found if name.split(".")[0] == "latenttree"}


IMPORTS = {name: imported(path.read_text()) for name, path in MODULES.items()}


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else module


def test_every_module_has_its_place() -> None:
    missing = {room_of(name) for name in MODULES} - {*ORDER, "latenttree"}
    assert not missing, f"add {sorted(missing)} to ORDER, after all that they import"


def test_the_architecture_lists_the_rooms_in_order() -> None:
    text = (SOURCE.parents[1] / "docs" / "architecture.md").read_text(encoding="utf8")
    rows = text.split("## Rooms")[1].split("\n## ")[0]
    listed = re.findall(r"^\| `(\w+)(?:/|\.py)` \|", rows, flags=re.MULTILINE)
    assert tuple(listed) == ORDER


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_go_one_way(module: str) -> None:
    if module == "latenttree":
        return  # the facade hands over to every room
    own = room_of(module)
    allowed = {*ORDER[: ORDER.index(own) + 1]}
    if own == "cli":
        allowed.add("latenttree")  # for the version
    wrong = {name for name in IMPORTS[module] if room_of(name) not in allowed}
    assert not wrong, f"{module} imports {sorted(wrong)}, which come after it"


def test_no_imports_in_a_circle() -> None:
    graph = nx.DiGraph(
        (module, name)
        for module, names in IMPORTS.items()
        for name in names
        if "latenttree" not in (module, name)
    )
    circles = [sorted(c) for c in nx.strongly_connected_components(graph) if len(c) > 1]
    assert not circles


@pytest.mark.parametrize(
    ("code", "modules"),
    [
        ("import latenttree.io.graphml", {"latenttree.io.graphml"}),
        ("from latenttree.io import graphml", {"latenttree.io.graphml"}),
        ("from latenttree.io.graphml import to_graphml", {"latenttree.io.graphml"}),
        ("import latenttree", {"latenttree"}),
        ("def f():\n    from latenttree.cli import app", {"latenttree.cli"}),
        ("import numpy, latenttreeish", set()),
    ],
)
def test_the_checker_sees_every_form_of_import(code: str, modules: set[str]) -> None:
    assert imported(code) == modules


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
