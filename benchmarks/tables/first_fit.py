"""The first fit on a machine, which compiles its kernels: seconds by stage and kind of table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from typing import Any

from benchmarks.grids import LABEL, Column, Row, field
from benchmarks.registry import Table
from benchmarks.settings import ROOT, Settings

ABOUT = """Each fit runs in a fresh process with an empty folder of kernels, then once more for what
a later fit takes. CPU seconds are of the process and of the child that compiles beside it. What
compilation is made of can be counted whatever else the machine does: kernels, and lines of LLVM
before (own) and after (linked) the kernels that a kernel calls are linked in; counted on one
thread, where no child compiles."""

FIT = """
import json, resource, sys, time
start = time.perf_counter()
import latenttree as lt
from latenttree.compilation import example
kind, n_states, n_jobs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) or None
counts = {"kernels": 0, "own": 0, "linked": 0}
if n_jobs == 1:
    from numba.core import codegen
    library = codegen.CPUCodeLibrary
    add, optimise = library.add_ir_module, library._optimize_final_module
    def counting_add(self, module):
        counts["own"] += str(module).count("\\n")
        return add(self, module)
    def counting_optimise(self):
        counts["kernels"] += 1
        counts["linked"] += str(self._final_module).count("\\n")
        return optimise(self)
    library.add_ir_module, library._optimize_final_module = counting_add, counting_optimise
data = example(kind, n_states)[0]
imported = time.perf_counter()
model = lt.LatentTree(n_states, random_state=0, n_jobs=n_jobs).fit(data)
first = time.perf_counter()
lt.LatentTree(n_states, random_state=0, n_jobs=n_jobs).fit(data)
second = time.perf_counter()
own, child = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps({
    "import": imported - start, "seconds": first - imported, "second": second - first,
    "cpu": own.ru_utime, "child_cpu": child.ru_utime, **counts,
    "stages": model.diagnostics_.stage_seconds,
}))
"""
CASES = (("codes", 2), ("sparse_binary", 2), ("values", 2), ("codes", 3))


def measure(settings: Settings) -> dict[str, Any]:
    """Fits with all cores, and with one to count what is compiled."""
    rows = []
    for kind, n_states in CASES[:1] if settings.quick else CASES:
        for n_jobs in (0, 1):
            label = f"{kind}, {n_states} states, {n_jobs or 'all'} threads"
            if settings.wants(label):
                rows.append({"label": label, **first_fit(kind, n_states, n_jobs)})
                settings.say(f"{label}: {rows[-1]['seconds']:.1f} s")
    return {"rows": rows}


def first_fit(kind: str, n_states: int, n_jobs: int) -> dict[str, Any]:
    """What a fresh process measures; `n_jobs` 0 for all cores."""
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", FIT, kind, str(n_states), str(n_jobs)],
            env=os.environ | {"NUMBA_CACHE_DIR": folder, "PYTHONPATH": path},
            stdout=subprocess.PIPE,
            check=True,
        )
    found: dict[str, Any] = json.loads(done.stdout)
    return {"kind": kind, "n_states": n_states, "n_jobs": n_jobs} | found


def _stages(row: Row) -> str:
    return ", ".join(f"{stage} {s:.1f}" for stage, s in row["stages"].items() if s > 0.5)


def _count(key: str) -> Column:
    return Column(key, lambda row: f"{row[key]:,}" if row["own"] else None)


COLUMNS = (
    LABEL._replace(heading="table"),
    Column("import, s", field("import", ".2f")),
    Column("first fit, s", field("seconds", ".2f")),
    Column("next fit", field("second", ".2f")),
    Column("CPU", field("cpu", ".2f")),
    Column("CPU of child", field("child_cpu", ".2f")),
    *(_count(key) for key in ("kernels", "own", "linked")),
    Column("stages", _stages),
)


TABLES = (
    Table(
        name="first-fit",
        shows="the first fit on a machine, which compiles: seconds by stage, size of the kernels",
        duration="10 min",
        title="First fit, seconds",
        about=ABOUT,
        measure=measure,
        columns=COLUMNS,
    ),
)
