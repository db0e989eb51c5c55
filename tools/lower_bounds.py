"""Print the lower bounds that pyproject.toml declares as constraints of pip: `numpy==1.26`.

    python tools/lower_bounds.py > constraints.txt

Of a package with several bounds the greatest counts, since nothing older can be installed beside
it. Tools that are held to one minor version (`~=`) have no lower bound of interest.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
EXTRAS = ("plot", "test")
"""Extras whose packages the tests use."""

BOUND = re.compile(r"^([A-Za-z0-9._-]+)>=([0-9][0-9.]*)$")


def lower_bounds(project: Path = PROJECT) -> dict[str, str]:
    """Version by package, of the dependencies and of `EXTRAS`."""
    table = tomllib.loads(project.read_text())["project"]
    listed = [table["dependencies"], *(table["optional-dependencies"][name] for name in EXTRAS)]
    found: dict[str, str] = {}
    for match in (BOUND.match(line) for lines in listed for line in lines):
        if match:
            name, version = match.groups()
            found[name] = max(version, found.get(name, "0"), key=numbers)
    return found


def numbers(version: str) -> tuple[int, ...]:
    """The parts of a version, comparable: (1, 26) of "1.26"."""
    return tuple(int(part) for part in version.split("."))


if __name__ == "__main__":
    for name, version in sorted(lower_bounds().items()):
        print(f"{name}=={version}")
