"""Compilation of kernels by the first fit on a machine, in two processes.

Compiling takes many times as long as a small fit and holds Python's global lock, so threads do not
help. While this process compiles the kernels it needs first, a child process compiles those of the
structure, on a tiny tree, and saves them in the folder of kernels. The child is killed when the fit
ends, however it ends; if the fit is killed, the child ends too, because its standard input is
closed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from latenttree.config import FitConfig
from latenttree.data import Table, as_table
from latenttree.data.distinct_rows import distinct_rows
from latenttree.distances.estimate import Distances
from latenttree.distances.similarity import Similarity, estimated_similarity
from latenttree.distances.stage import Measured, States
from latenttree.engine.kernels import kernel_folder
from latenttree.evaluation.simulation import make_latent_tree
from latenttree.parameters.stage import estimate_parameters
from latenttree.refinement.stage import refine
from latenttree.structure.builder import TreeBuilder
from latenttree.structure.contraction import refit_lengths
from latenttree.structure.edge_evidence import edge_tests
from latenttree.structure.learn import Structure
from latenttree.structure.sweeps import sweep
from latenttree.structure.wide_joining import resolve_node
from latenttree.tree import Tree

LONGEST_WAIT = 120.0
"""Seconds to wait for a child; after that the fit compiles by itself."""

_CHILD = "from latenttree.compilation import serve; serve()"


# ---- during a fit ----------------------------------------------------------------------------


class Compiler:
    """A child process that compiles the first stage that was never compiled; a context manager that
    ends the child."""

    def __init__(
        self,
        table: Table,
        n_states: int,
        config: FitConfig,
        stages: Sequence[str] = ("structure", "model"),
    ) -> None:
        """`stages` are those that the fit will need."""
        self._progress = config.progress
        self._kind, self._n_states, self._stages = table.kernels, n_states, stages
        self._child: subprocess.Popen[bytes] | None = None
        left = (s for s in stages if not done_file(s, self._kind, n_states).exists())
        self.stage = next(left, None)
        if config.n_jobs > 1 and self.stage is not None:
            self._child = start_child(self.stage, self._kind, n_states)

    @property
    def running(self) -> bool:
        """Whether a child process is running."""
        return self._child is not None

    def wait(self, stage: str) -> None:
        """Wait until a child has compiled the kernels of a stage, if one does. During those of the
        structure, this process compiles those of the model and of edge tests, with the kernels that
        the child has saved by then."""
        if self._child is None or self.stage != stage:
            return
        with self._progress.stage("compiling"):
            if stage == "structure":
                self._compile_meanwhile()
            with suppress(subprocess.TimeoutExpired):
                self._child.wait(LONGEST_WAIT)
            self.end()

    def _compile_meanwhile(self) -> None:
        """Compile what the child does not."""
        if "model" in self._stages:
            compile_model(self._kind, self._n_states)
            mark_done("model", self._kind, self._n_states)
        compile_edges(self._kind, self._n_states)

    def end(self) -> None:
        """Kill the child process."""
        if self._child is not None:
            end_child(self._child)
            self._child = None

    def __enter__(self) -> Compiler:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


# ---- children --------------------------------------------------------------------------------


def start_child(stage: str, kind: str, n_states: int) -> subprocess.Popen[bytes] | None:
    """A process that compiles a stage; None if there is no interpreter to run, or no folder for
    kernels."""
    if kernel_folder() is None or not _is_python(sys.executable):
        return None
    order = {"path": _import_path(), "stage": stage, "kind": kind, "n_states": n_states}
    try:
        child = subprocess.Popen(
            [sys.executable, "-P", "-c", _CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(_import_path())},
        )
        assert child.stdin is not None
    except OSError:
        return None
    try:
        child.stdin.write(json.dumps(order).encode() + b"\n")
        child.stdin.flush()
    except OSError:  # it has ended already
        end_child(child)
        return None
    return child


def end_child(child: subprocess.Popen[bytes]) -> None:
    """Kill a child process, and wait for its end."""
    child.kill()
    child.wait()
    if child.stdin is not None:
        with suppress(OSError):
            child.stdin.close()


def _is_python(executable: str | None) -> bool:
    """Whether a program is an interpreter: an application that embeds or freezes one is not."""
    frozen = getattr(sys, "frozen", False)
    return bool(executable) and not frozen and "python" in Path(str(executable)).name.lower()


def _import_path() -> list[str]:
    """Where this process imports from, without the current folder."""
    return [os.path.abspath(entry) for entry in sys.path if entry not in ("", ".")]


def serve() -> None:
    """Main function of a child: one order from its standard input; it ends when that is closed."""
    order = json.loads(sys.stdin.buffer.readline())
    sys.path[:] = order["path"]
    threading.Thread(target=_end_with_input, daemon=True).start()
    what = order["stage"], order["kind"], order["n_states"]
    STAGES[what[0]](*what[1:])
    mark_done(*what)


def _end_with_input() -> None:
    """Wait for the end of standard input, and end the process."""
    while os.read(0, 1):  # without the lock of a buffer, which the interpreter's end would wait for
        pass
    os._exit(1)


def done_file(stage: str, kind: str, n_states: int) -> Path:
    """The file that marks all kernels of a stage as compiled. Structures need the same kernels for
    all data, and models the same for three states or more."""
    name = stage if stage == "structure" else f"{stage}-{kind}-{min(n_states, 3)}"
    return (kernel_folder() or Path(os.devnull)) / f"{name}.compiled"


def mark_done(stage: str, kind: str, n_states: int) -> None:
    """Mark all kernels of a stage as compiled."""
    with suppress(OSError):
        done_file(stage, kind, n_states).touch()


# ---- what is compiled ------------------------------------------------------------------------


def compile_sweeps(kind: str, n_states: int) -> None:
    """Sweep over a small tree, and fit lengths around an unresolved node: the same kernels for all
    data."""
    similarity, tree = _small_tree(n_states)
    sweep(tree, similarity)
    p = similarity.n_variables
    ends = np.column_stack([np.arange(p), np.full(p, p)])
    refit_lengths(TreeBuilder(p, ends, np.full(p, 0.5)), similarity)


def compile_edges(kind: str, n_states: int) -> None:
    """Test the edges of a small tree."""
    similarity, tree = _small_tree(n_states)
    edge_tests(tree, similarity)


def _small_tree(n_states: int) -> tuple[Similarity, TreeBuilder]:
    """Similarities of a small tree with some noise, and the tree by neighbour joining."""
    p, n_directions = 16, n_states - 1
    rng = np.random.default_rng(0)
    tree = make_latent_tree(p, 2, 2, n_samples=2, random_state=0).tree
    noise = np.triu(rng.normal(0, 0.02, (p, p)), 1)
    distances = n_directions * tree.path_lengths()[:p, :p] + noise + noise.T
    determinants = np.exp(-distances).astype(np.float32)
    np.fill_diagonal(determinants, 1.0)
    errors = np.full((p, p), 0.02, dtype=np.float32)
    kurtosis = np.full((p, p), 3.0, dtype=np.float32)
    similarity = estimated_similarity(Distances(determinants, errors, n_directions, 2000, kurtosis))
    edges_and_lengths = resolve_node(np.abs(similarity.rho), similarity.typical_samples, 1.0, False)
    return similarity, TreeBuilder(p, *edges_and_lengths)


def compile_model(kind: str, n_states: int) -> None:
    """Estimate and refine the parameters of a small table of the kind."""
    data, tree = example(kind, n_states)
    config = FitConfig(max_iter=3, search=False)
    states, table = States(n_states, n_states - 1), distinct_rows(as_table(data))
    start = estimate_parameters(Structure.of_tree(tree), table, states, Measured(), config)
    refine(start, table, config)


STAGES: dict[str, Callable[[str, int], None]] = {
    "structure": compile_sweeps,
    "model": compile_model,
}


def example(kind: str, n_states: int) -> tuple[Any, Tree]:
    """Data of a kind that `fit` takes, drawn from a small tree, and the tree."""
    d = 2 if kind == "sparse_binary" else max(n_states, 3)
    drawn = make_latent_tree(9, min(n_states, d), d, n_samples=500, random_state=0)
    codes = np.asarray(drawn.X)
    if kind == "codes":
        return codes, drawn.tree
    if kind == "sparse_binary":
        return csr_array(codes.astype(np.int32)), drawn.tree
    noise = np.random.default_rng(0).normal(0, 0.3, (9, len(codes), max(n_states, 2)))
    values = codes.T[:, :, None] + noise
    return (values[:, :, 0].T if kind == "values" else list(values)), drawn.tree
