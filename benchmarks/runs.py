"""Independent runs: every case with every seed, kept as they finish, in one process or several.

Each run is written to `NAME_runs.jsonl` at once, so that `--resume` goes on after an interruption;
runs of another version of the source are not reused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Protocol

from threadpoolctl import threadpool_limits

from benchmarks.grids import mean_stages, values
from benchmarks.machine import source_hash
from benchmarks.recording import file_of, plain
from benchmarks.settings import Settings
from benchmarks.timing import SPAWN, warm_up

Run = dict[str, Any]


class Case(Protocol):
    """What a row is about; it goes to other processes, so it can be pickled."""

    @property
    def label(self) -> str:
        """The row's label."""
        ...


def run_cases(
    run: Callable[[Any, int], Run],
    cases: Sequence[Case],
    settings: Settings,
    seeds: int,
    *,
    quick_seeds: int = 1,
    in_processes: bool = False,
    warm: Callable[[], None] = warm_up,
) -> list[dict[str, Any]]:
    """A row `{"label", "seconds", "stages", "runs"}` for each case that was asked for.

    `run(case, seed)` returns what the JSON file keeps of a run. `in_processes` is for tables that
    are not about time: `settings.jobs` processes, one thread each. Seeds are in the outer loop, so
    that an interrupted call has whole seeds, and what else the machine does falls on all cases.
    """
    wanted = {case.label: case for case in cases if settings.wants(case.label)}
    chosen = settings.seed_range(seeds, quick_seeds)
    log = RunLog(file_of(settings.table, settings.out, settings.quick, "_runs.jsonl"), settings)
    todo = [
        (case, seed)
        for seed in chosen
        for label, case in wanted.items()
        if (label, seed) not in log.runs
    ]
    finish = _in_processes if in_processes else _here
    for i, (case, seed, found) in enumerate(finish(run, todo, settings, warm), 1):
        log.add(case.label, seed, found)
        if i % -(-len(todo) // 20) == 0:
            settings.say(f"{i} of {len(todo)}: {case.label}, seed {seed}")
    return [_row(label, [log.runs[label, seed] for seed in chosen]) for label in wanted]


def _here(
    run: Callable[[Any, int], Run],
    todo: Sequence[tuple[Any, int]],
    settings: Settings,
    warm: Callable[[], None],
) -> Iterator[tuple[Any, int, Run]]:
    if todo:
        warm()
    for case, seed in todo:
        yield case, seed, run(case, seed)


def _in_processes(
    run: Callable[[Any, int], Run],
    todo: Sequence[tuple[Any, int]],
    settings: Settings,
    warm: Callable[[], None],
) -> Iterator[tuple[Any, int, Run]]:
    with ProcessPoolExecutor(settings.jobs, mp_context=SPAWN, initializer=warm) as pool:
        waiting = {pool.submit(_on_one_thread, run, *task): task for task in todo}
        try:
            for future in as_completed(waiting):
                yield *waiting[future], future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _on_one_thread(run: Callable[[Any, int], Run], case: Any, seed: int) -> Run:
    with threadpool_limits(limits=1):
        return run(case, seed)


def _row(label: str, runs: list[Run]) -> dict[str, Any]:
    row: dict[str, Any] = {"label": label, "seconds": None, "runs": runs}
    times = values(row, "seconds")
    stages = [run["stages"] for run in runs if run.get("stages")]
    row["seconds"] = float(times.mean()) if len(times) else None
    return row | ({"stages": mean_stages(stages)} if stages else {})


class RunLog:
    """Finished runs of a table by label and seed, a line of a file each."""

    def __init__(self, path: Path, settings: Settings) -> None:
        self.path, self.source = path, source_hash()
        self.runs: dict[tuple[str, int], Run] = {}
        self.choices = plain(settings.choices)
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text().splitlines() if settings.resume and path.is_file() else []
        path.write_text("")
        for line in lines:
            self._read(line)
        if lines:
            settings.say(f"resumed: {len(self.runs)} of {len(lines)} runs can be used")

    def _read(self, line: str) -> None:
        """Keep what the same source and options have made; a line that was cut short is lost."""
        try:
            kept = json.loads(line)
        except json.JSONDecodeError:
            return
        if kept["source"] == self.source and kept["choices"] == self.choices:
            self.add(kept["label"], kept["run"]["seed"], kept["run"])

    def add(self, label: str, seed: int, run: Run) -> None:
        """Keep a run, here and in the file."""
        self.runs[label, seed] = {"seed": seed, **plain(run)}
        line = {"label": label, "source": self.source, "choices": self.choices}
        with self.path.open("a") as file:
            file.write(json.dumps(line | {"run": self.runs[label, seed]}) + "\n")
