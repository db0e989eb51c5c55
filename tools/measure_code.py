"""Print a table of measures of the code: sizes, functions, imports, repetition, tests.

    python tools/measure_code.py                         # this checkout
    python tools/measure_code.py BEFORE_ROOT AFTER_ROOT  # two checkouts, side by side

A room is a folder directly below src/latenttree; modules beside the rooms are one room together,
"top level". A function's lines run from `def` to its end, with the docstring. An import is an edge
to the module that the statement names; modules that are loaded by a string are not seen.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import NamedTuple

PACKAGE = "latenttree"
TOP = "top level"
TYPE_CHECKING = ("TYPE_CHECKING", "typing.TYPE_CHECKING")
LONG = 40  # lines; a function with more is long
WIDE = 8  # parameters; a function with more is wide
WINDOW = 6  # lines; fewer that are the same are no repetition
SET_CONSTANT = r"""\.setattr\(\s*(?:[^"'(),]+,\s*["']|["'][\w.]*\.)[A-Z0-9_]+["']"""
GLOBAL_RANDOM = r"\b(?:np|numpy)\.random\.(?!default_rng)[a-z]\w*"

Function = ast.FunctionDef | ast.AsyncFunctionDef
Import = ast.Import | ast.ImportFrom
Graph = dict[str, set[str]]


class File(NamedTuple):
    """A source file that was read: where it stands, its lines and its syntax tree."""

    path: Path
    room: str
    module: str
    lines: list[str]
    tree: ast.Module


class Definition(NamedTuple):
    """A function or class by its dotted name, and what it is in: module, class or function."""

    name: str
    node: Function | ast.ClassDef
    owner: str


def read_files(folder: Path) -> list[File]:
    """All Python files in or below a folder, as modules of a package named like it."""
    files = []
    for path in sorted(folder.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        parts = path.relative_to(folder).with_suffix("").parts
        room, lines = parts[0] if parts[1:] else TOP, text.removesuffix("\n").split("\n")
        module = ".".join((folder.name, *parts)).removesuffix(".__init__")
        files.append(File(path, room, module, lines if text else [], ast.parse(text, str(path))))
    return files


def statements(node: ast.AST) -> list[ast.AST]:
    """Statements directly inside another, and clauses that hold statements."""
    kinds = (ast.stmt, ast.excepthandler, ast.match_case)
    return [child for child in ast.iter_child_nodes(node) if isinstance(child, kinds)]


def definitions(node: ast.AST, prefix: str, owner: str = "module") -> Iterator[Definition]:
    """Functions and classes below a node, those inside others too."""
    for child in statements(node):
        if isinstance(child, Function | ast.ClassDef):
            name = f"{prefix}.{child.name}".removeprefix(f"{PACKAGE}.")
            yield Definition(name, child, owner)
            inside = "class" if isinstance(child, ast.ClassDef) else "function"
            yield from definitions(child, name, "function" if owner == "function" else inside)
        else:
            yield from definitions(child, prefix, owner)


def is_public(found: Definition) -> bool:
    """Whether neither it nor anything around it is hidden: in a function, or by an underscore."""
    return found.owner != "function" and not re.search(r"(^|\.)_", found.name)


def listing(found: Iterable[tuple[str, int]], most: int = 5) -> str:
    """The names with the greatest numbers, those numbers in brackets."""
    ordered = sorted(found, key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"`{name}` ({number})" for name, number in ordered[:most]) or "none"


def sizes(root: Path, source: list[File], tests: list[File], rooms: list[str]) -> dict[str, str]:
    """Lines and files of each part, and entries at the top level of the package."""
    parts = {"src": source}
    parts |= {f"src, {room}": [file for file in source if file.room == room] for room in rooms}
    parts |= {"benchmarks": read_files(root / "benchmarks"), "tests": tests}
    cells = {
        f"{name}: lines / files": f"{sum(len(f.lines) for f in files)} / {len(files)}"
        for name, files in parts.items()
    }
    listed = [path for path in (root / "src" / PACKAGE).iterdir() if path.name[0] != "."]
    kept = [path for path in listed if path.is_file() or any(path.rglob("*.py"))]
    folders = sum(path.is_dir() for path in kept)
    return {**cells, "src: entries at the top level (folders)": f"{len(kept)} ({folders})"}


def count_lines(node: ast.stmt) -> int:
    """Lines of a statement, without its decorators."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def count_parameters(found: Definition, node: Function) -> int:
    """Parameters that a caller sees: the object of a method is none."""
    named = [*node.args.posonlyargs, *node.args.args]
    bound = found.owner == "class" and bool(named) and named[0].arg in ("self", "cls")
    starred = (node.args.vararg is not None) + (node.args.kwarg is not None)
    return len(named) - bound + len(node.args.kwonlyargs) + starred


def measure_functions(found: list[Definition]) -> dict[str, str]:
    """How long and how wide functions are, and how much is not described."""
    inner = [(d, d.node) for d in found if not isinstance(d.node, ast.ClassDef)]
    lengths = [(d.name, count_lines(node)) for d, node in inner]
    widths = [(d.name, count_parameters(d, node)) for d, node in inner]
    described = [(node, ast.get_docstring(node) is not None) for _, node in inner]
    bare = [count_lines(n) - (count_lines(n.body[0]) if has else 0) for n, has in described]
    forms = {d: [ast.unparse(way) for way in d.node.decorator_list] for d in found if is_public(d)}
    public = [d for d in forms if not any(f.endswith(("overload", "setter")) for f in forms[d])]
    silent = sum(ast.get_docstring(d.node) is None for d in public)
    return {
        "functions": str(len(inner)),
        "median lines of a function": f"{median(n for _, n in lengths):g}",
        f"functions over {LONG} lines": str(sum(n > LONG for _, n in lengths)),
        f"functions over {LONG} lines without their docstring": str(sum(n > LONG for n in bare)),
        "longest functions (lines)": listing(lengths),
        "public functions, methods, classes without a docstring": f"{silent} of {len(public)}",
        f"functions with more than {WIDE} parameters": str(sum(n > WIDE for _, n in widths)),
        "widest signatures (parameters)": listing(widths),
    }


def imports(node: ast.AST, typing: bool = False) -> Iterator[tuple[Import, bool]]:
    """Statements below a node that import, and whether they stand under TYPE_CHECKING."""
    for child in statements(node):
        if isinstance(child, Import):
            yield child, typing
        elif isinstance(child, ast.If) and ast.unparse(child.test) in TYPE_CHECKING:
            yield from imports(ast.Module(child.body, []), True)
            yield from imports(ast.Module(child.orelse, []), typing)
        else:
            yield from imports(child, typing)


def targets(node: Import, file: File, modules: set[str]) -> set[str]:
    """Modules of the package that a statement imports, or imports from."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names} & modules
    parts = [node.module] if node.module else []
    if node.level:
        package = file.module.split(".") + ["."] * (file.path.name == "__init__.py")
        parts = package[: -node.level] + parts
    base = ".".join(parts)
    inner = {f"{base}.{alias.name}" for alias in node.names}
    return {name if name in modules else base for name in inner} & modules


def room_of(module: str) -> str:
    """The first-level package or module; each module at the top level is a room of its own."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else module


def import_graph(source: list[File], typing: bool, rooms: bool = False) -> Graph:
    """What each module or room imports; also under TYPE_CHECKING if `typing`."""
    label = {file.module: room_of(file.module) if rooms else file.module for file in source}
    graph: Graph = {name: set() for name in label.values()}
    for file in source:
        own = label[file.module]
        for node, only_types in imports(file.tree):
            if typing or not only_types:
                graph[own] |= {label[name] for name in targets(node, file, set(label))} - {own}
    return graph


def cycles(graph: Graph) -> str:
    """Strongly connected components of more than one node: number, sizes, the greatest's nodes."""
    reached = {node: set(imported) for node, imported in graph.items()}
    for middle in graph:
        for ahead in reached.values():
            ahead |= reached[middle] if middle in ahead else set()
    found = {tuple(sorted(b for b in reached[a] if a in reached[b])) for a in graph}
    ordered = sorted((c for c in found if len(c) > 1), key=lambda c: (-len(c), c))
    names = ", ".join(name.removeprefix(f"{PACKAGE}.") for c in ordered[:1] for name in c)
    sizes = ", ".join(str(len(c)) for c in ordered)
    return f"{len(ordered)} (sizes {sizes}; greatest: {names})" if ordered else "0"


def measure_imports(source: list[File]) -> dict[str, str]:
    """Imports between files and between rooms, and where they close cycles."""
    rooms = {file.module: file.room for file in source}
    graph, full = import_graph(source, typing=False), import_graph(source, typing=True)
    joined = import_graph(source, typing=False, rooms=True)
    edges = [(rooms[a], rooms[b]) for a, imported in graph.items() for b in imported]
    mutual = sum(a in joined[b] for a in joined for b in joined[a]) // 2
    return {
        "pairs of rooms (one imports the other)": str(sum(map(len, joined.values()))),
        "pairs of rooms that import each other": str(mutual),
        "import edges between files": str(len(edges)),
        "import edges between files of two rooms": str(sum(a != b for a, b in edges)),
        "import edges more under TYPE_CHECKING": str(sum(map(len, full.values())) - len(edges)),
        "cycles between files": cycles(graph),
        "cycles between files, TYPE_CHECKING too": cycles(full),
        "cycles between rooms": cycles(joined),
        "cycles between rooms, TYPE_CHECKING too": cycles(import_graph(source, True, rooms=True)),
    }


def measure_names(found: list[Definition]) -> dict[str, str]:
    """Names of classes and of public functions that more than one module defines."""
    classes = {d.name for d in found if d.owner == "module" and isinstance(d.node, ast.ClassDef)}
    public = {d.name for d in found if d.owner == "module" and is_public(d)} - classes
    cells = {}
    for kind, names in (("classes", classes), ("public functions", public)):
        modules = Counter(name.rpartition(".")[2] for name in names)
        shared = [(name, number) for name, number in modules.items() if number > 1]
        cells[f"names of {kind} in more than one module"] = str(len(shared))
        cells[f"such names of {kind} (modules)"] = listing(shared, most=10)
    return cells


def code_lines(file: File) -> list[str]:
    """Lines that are neither blank nor comments nor imports, stripped; docstrings are kept."""
    spans = [(node.lineno, count_lines(node)) for node, _ in imports(file.tree)]
    imported = {first + k for first, length in spans for k in range(length)}
    stripped = [line.strip() for n, line in enumerate(file.lines, 1) if n not in imported]
    return [line for line in stripped if line and line[0] != "#"]


def measure_repetition(source: list[File]) -> dict[str, str]:
    """Runs of lines that stand in two places, each run counted once however long it is."""
    places: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for number, lines in enumerate(map(code_lines, source)):
        for start in range(len(lines) - WINDOW + 1):
            places[hash(tuple(lines[start : start + WINDOW]))].append((number, start))
    found = [pair for same in places.values() for pair in combinations(same, 2)]
    pairs = {(p, q) for p, q in found if p[0] != q[0] or q[1] - p[1] >= WINDOW}
    begun = sum(((i, a - 1), (j, b - 1)) not in pairs for (i, a), (j, b) in pairs)
    return {f"repeated groups of {WINDOW} or more lines (pairs of places)": str(begun)}


def count(pattern: str, files: list[File]) -> str:
    """How often a regular expression is found in the text of files."""
    return str(sum(len(re.findall(pattern, "\n".join(file.lines))) for file in files))


def measure_tests(tests: list[File], source: list[File]) -> dict[str, str]:
    """How much is tested, and how often tests reach into modules."""
    collected = [file for file in tests if file.path.name.startswith("test_")]
    found = [d for file in collected for d in definitions(file.tree, "") if d.owner != "function"]
    names = {file.path.stem.removeprefix("test_") for file in collected}
    modules = [file for file in source if not file.path.stem.startswith("__")]
    alone = [f for f in modules if not names & {f.path.stem, f"{f.room}_{f.path.stem}"}]
    return {
        "test files": str(len(collected)),
        "test functions": str(sum(d.node.name.startswith("test_") for d in found)),
        "setattr on constants in tests": count(SET_CONSTANT, tests),
        "np.random state of the module in tests": count(GLOBAL_RANDOM, tests),
        "modules without test_NAME.py or test_ROOM_NAME.py": f"{len(alone)} of {len(modules)}",
    }


def measure(root: Path, source: list[File], rooms: list[str]) -> dict[str, str]:
    """All measures of one checkout, by name."""
    tests = read_files(root / "tests")
    found = [d for file in source for d in definitions(file.tree, file.module)]
    cells = sizes(root, source, tests, rooms) | measure_functions(found) | measure_imports(source)
    cells |= measure_names(found) | measure_repetition(source) | measure_tests(tests, source)
    cli = [file for file in source if file.room == "cli"]
    cells["uses of `re.` in cli"] = count(r"\bre\.\w", cli)
    cells["`except` clauses in cli"] = count(r"(?m)^\s*except\b", cli)
    return cells


def main() -> None:
    """Read the checkouts that are named, and print the table."""
    parser = argparse.ArgumentParser(description="Print a table of measures of the code.")
    parser.add_argument("roots", nargs="*", type=Path, help="one or two checkouts; else this one")
    roots = parser.parse_args().roots or [Path(__file__).parents[1]]
    if len(roots) > 2 or not all((root / "src" / PACKAGE).is_dir() for root in roots):
        parser.error(f"pass one or two folders that hold src/{PACKAGE}")
    sources = [read_files(root / "src" / PACKAGE) for root in roots]
    rooms = [TOP, *sorted({file.room for source in sources for file in source} - {TOP})]
    columns = [measure(root, source, rooms) for root, source in zip(roots, sources, strict=True)]
    print("| measure |", " | ".join(str(root) for root in roots), "|")
    print("|---|", "---|" * len(roots), sep="")
    for name in columns[0]:
        print(f"| {name} |", " | ".join(column[name] for column in columns), "|")


if __name__ == "__main__":
    main()
