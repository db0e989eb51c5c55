"""The README's examples, and the files that they name.

As a script this runs the examples in any environment that has latenttree: `python tests/readme.py`.
"""

from __future__ import annotations

import csv
import doctest
import re
import shlex
from collections.abc import Iterable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
COMMANDS = ROOT / "docs" / "examples" / "howto" / "command_line.py"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
COLUMNS = ("smoker", "cough", "wheeze", "fever", "ache", "chills", "cake", "sweets", "cola")


def blocks(*kinds: str) -> list[tuple[int, str, str]]:
    """Line, kind and text of every block of the given kinds; a plain one has the kind ''."""
    text = README.read_text(encoding="utf-8")
    found = [(text.count("\n", 0, b.start()) + 1, *b.groups()) for b in BLOCK.finditer(text)]
    return [block for block in found if block[1] in kinds]


def commands(program: str) -> list[list[str]]:
    """Every line of a block that calls the program, as words."""
    lines = [line for _, _, text in blocks("", "sh") for line in text.splitlines()]
    return [shlex.split(line, comments=True) for line in lines if line.startswith(program + " ")]


def page_commands() -> list[list[str]]:
    """The commands of the page on the command line that building it does not run."""
    lines = re.findall(r"^# +\$ (.+)$", COMMANDS.read_text(encoding="utf-8"), re.MULTILINE)
    return [shlex.split(line) for line in lines]


def run_examples() -> None:
    """One after another in one namespace, as a reader would type them."""
    examples = blocks("python", "pycon")
    assert examples, "the README has no python example"
    namespace: dict[str, object] = {}
    for line, kind, code in examples:
        if kind == "python":
            # Blank lines in front, so that a traceback gives the line of the README.
            exec(compile("\n" * line + code, str(README), "exec"), namespace)
            continue
        example = doctest.DocTestParser().get_doctest(code, namespace, "README", str(README), line)
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        runner.run(example, clear_globs=False)
        namespace = example.globs
        assert runner.failures == 0, f"README line {line}: the output differs, see above"


def write_files() -> None:
    """All that the commands read, into the working folder."""
    write_tables()
    write_others()


def write_tables() -> None:
    """table.csv: three groups of answers that go together; new.csv: ten of them, with gaps."""
    rng = np.random.default_rng(0)
    hidden = rng.integers(0, 2, 1000)[:, None] ^ (rng.random((1000, 3)) < 0.2)
    answers = np.repeat(hidden, 3, axis=1) ^ (rng.random((1000, 9)) < 0.1)
    rows = np.where(answers == 1, "yes", "no").astype(object)
    gaps = rows[:10].copy()
    gaps[rng.random(gaps.shape) < 0.2] = ""
    for name, content in (("table.csv", rows), ("new.csv", gaps)):
        write(name, list(COLUMNS), content.tolist())


def write_others() -> None:
    """Counts with weights, numbers, events with a map to groups, an alignment."""
    rng = np.random.default_rng(0)
    hidden = rng.integers(0, 2, 1500)[:, None] ^ (rng.random((1500, 3)) < 0.15)
    visits = rng.poisson(1 + 3 * hidden[:, 0])
    numbers = 2.0 * np.repeat(hidden, 2, axis=1) + rng.normal(size=(1500, 6))
    times = rng.integers(1, 4, 1500)
    write("survey.csv", ["visits", *"abcdef", "times"], np.column_stack([visits, numbers, times]))
    write("returns.csv", list("abcdef"), numbers)
    codes = np.repeat(hidden, 3, axis=1) ^ (rng.random((1500, 9)) < 0.1)
    events = [(person, f"c{code}") for person, code in np.argwhere(codes)]
    write("events.csv", ["person", "code"], events)
    write("codes.csv", ["code", "group"], [(f"c{i}", f"g{i // 3}") for i in range(9)])
    letters = np.array(list("ACGT"))[hidden @ np.array([1, 2, 0])]
    taxa = [
        np.where(rng.random(1500) < 0.2, rng.choice(list("ACGT-"), 1500), letters) for _ in range(5)
    ]
    text = "".join(f">taxon{i}\n{''.join(taxon)}\n" for i, taxon in enumerate(taxa))
    Path("alignment.fasta").write_text(text)


def write(name: str, header: list[str], rows: Iterable[Iterable[object]]) -> None:
    with Path(name).open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


if __name__ == "__main__":
    run_examples()
