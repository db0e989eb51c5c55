"""The first fit on a machine: seconds with an empty folder of kernels, by stage and kind of table.

Each fit runs in a fresh process with a folder of its own, then once more for what a later fit
takes. CPU seconds are of the process and of the child that compiles beside it. What compilation is
made of can be counted whatever else the machine does: kernels, and lines of LLVM before (own) and
after (linked) the kernels that a kernel calls are linked in.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from typing import Any

from benchmarks.common import console, options, save, table

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
    "import": imported - start, "first": first - imported, "second": second - first,
    "cpu": own.ru_utime, "cpu of the child": child.ru_utime, **counts,
    "stages": model.diagnostics_.stage_seconds,
}))
"""

CASES = [("codes", 2), ("sparse_binary", 2), ("values", 2), ("codes", 3)]


def first_fit(kind: str, n_states: int, n_jobs: int) -> dict[str, Any]:
    """What a fresh process measures; `n_jobs` 0 for all cores."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", FIT, kind, str(n_states), str(n_jobs)],
            env=os.environ | {"NUMBA_CACHE_DIR": folder},
            stdout=subprocess.PIPE,
            check=True,
        )
    return {"kind": kind, "n_states": n_states, "n_jobs": n_jobs} | json.loads(done.stdout)


def main() -> None:
    """Fit with all cores, and with one to count what is compiled."""
    args = options(__doc__, seeds=1).parse_args()
    cases = CASES[:1] if args.quick else CASES
    results = [first_fit(kind, k, n_jobs) for kind, k in cases for n_jobs in (0, 1)]
    columns = "table|threads|first fit|next fit|CPU|CPU of child|kernels|own|linked|stages"
    shown = table("First fit, seconds", columns)
    for r in results:
        times = [f"{r[name]:.2f}" for name in ("first", "second", "cpu", "cpu of the child")]
        sizes = [f"{r[name]:,}" if r["own"] else "" for name in ("kernels", "own", "linked")]
        stages = ", ".join(f"{stage} {s:.1f}" for stage, s in r["stages"].items() if s > 0.5)
        kind = f"{r['kind']}, {r['n_states']} states"
        shown.add_row(kind, str(r["n_jobs"] or "all"), *times, *sizes, stages)
    console.print(shown)
    save("first_fit", args, results)


if __name__ == "__main__":
    main()
