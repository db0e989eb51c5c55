"""Whether another version of the code gives the same answers, on many small data sets.

    python benchmarks/same_answers.py list
    python benchmarks/same_answers.py record BEFORE.npz [--only NAME ...] [--repeat N]
    python benchmarks/same_answers.py compare BEFORE.npz AFTER.npz [--only NAME ...] [--ignore ...]

`record` fits every data set and writes all that can be asked of the model: the tree with lengths
and supports, every parameter, what the fit says about itself, likelihoods, posteriors, filled gaps
and drawn samples. `compare` prints a line for each data set and ends with status 1 where a tree
differs, a number by more than 1e-10, or anything else that was recorded but the time.

Only what users can call is used, so that modules may be moved and renamed between the two. To
record another version, put its sources first in PYTHONPATH. Names may be patterns, as
`--only 'missing_*'`. Times are those of fits alone; the first record on a machine compiles.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import latenttree as lt
from benchmarks.answers import by_container, by_family, by_file, by_option
from benchmarks.answers.asking import answers_of, as_text
from benchmarks.answers.comparing import SOURCE, compare, loaded
from benchmarks.answers.learning import learned
from benchmarks.answers.tasks import TASKS, WIDTH, Arrays, chosen, seed_of

SETS = (by_family, by_container, by_option, by_file)
"""Importing these modules has added all data sets to `TASKS`."""


def record(path: Path, names: Sequence[str], repeat: int) -> int:
    """Fit the data sets, write their answers; the number of those that failed."""
    found: Arrays = {}
    failed = []
    start = time.perf_counter()
    print(f"latenttree of {source()}", flush=True)
    for name in names:
        try:
            answers, seconds = recorded(name, repeat)
        except Exception as error:  # told, and recorded: it may be the same on the other side
            answers, seconds = {"facts/error": as_text(f"{type(error).__name__}: {error}")}, np.nan
            failed.append(name)
            print(f"{name:{WIDTH}}  {type(error).__name__}: {str(error)[:200]}", flush=True)
        else:
            print(f"{name:{WIDTH}} {seconds:8.2f} s", flush=True)
        found |= {f"{name}/{key}": array for key, array in answers.items()}
        found[f"{name}/seconds"] = np.asarray(seconds)
    everything: dict[str, Any] = {SOURCE: np.asarray(source()), **found}
    np.savez_compressed(path, **everything)
    total = np.nansum([found[f"{name}/seconds"] for name in names])
    spent = time.perf_counter() - start
    print(f"{len(names)} data sets in {spent:.0f} s, fits {total:.0f} s; {len(failed)} failed")
    return len(failed)


def source() -> str:
    """The folder of the package at work, and a digest of its files."""
    folder = Path(lt.__file__).parent
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        found.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return f"{folder} ({found.hexdigest()[:12]})"


def recorded(name: str, repeat: int) -> tuple[Arrays, float]:
    """Answers of a data set, and the fewest seconds of its fits."""
    seed = seed_of(name)
    given = TASKS[name](seed)
    with tempfile.TemporaryDirectory() as folder:
        fits = [learned(given, seed, Path(folder)) for _ in range(repeat)]
        return answers_of(fits[-1][0], given), min(seconds for _, seconds in fits)


# ---- command line --------------------------------------------------------------------------------


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="names of the data sets")
    recording = commands.add_parser("record", help="fit the data sets, write their answers")
    recording.add_argument("file", type=Path, metavar="FILE.npz")
    recording.add_argument("--repeat", type=int, default=1, help="fits of each; the fastest counts")
    comparing = commands.add_parser("compare", help="print what differs between two records")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    comparing.add_argument(
        "--ignore", nargs="+", default=[], metavar="WHAT", help="what may differ, as messages"
    )
    for command in (recording, comparing):
        command.add_argument("--only", nargs="+", default=[], metavar="NAME")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Status 1 where something failed or differs."""
    args = parsed(arguments)
    if args.command == "list":
        print("\n".join(TASKS))
        return 0
    if args.command == "compare":
        return int(compare(loaded(args.before), loaded(args.after), args.only, args.ignore) > 0)
    names = list(chosen(TASKS, args.only))
    if not names:
        print(f"no data set is named {' or '.join(args.only)}; see list", file=sys.stderr)
        return 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what they say is among the messages
        return int(record(args.file, names, max(1, args.repeat)) > 0)
