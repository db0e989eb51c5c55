"""Pages to share: their size, how long they take to write and to open, and to pan."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.browser import browser, console_errors, missing, open_page, pan, requests
from benchmarks.grids import Column, number, seconds
from benchmarks.registry import Table
from benchmarks.settings import Settings
from benchmarks.timing import timed
from latenttree.data import Schema, as_table
from latenttree.errors import DataError
from latenttree.estimator import LatentTree
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.report import Diagnostics

ABOUT = """Pages (`model.to_html`) of trees of known parameters, two states, with topics and all
conditional tables. Written: seconds of `to_html`, kernels compiled. Opened: from a file in
headless Chromium, until the map is drawn. Pan: the median (and 95th percentile) milliseconds to
draw a frame of 1,400 x 900 pixels while the map is panned, until the picture is complete, with
the whole tree in view and from near. WebGL is computed on the processor (SwiftShader), which is
the slowest case; 2D canvas is what browsers without it fall back to. Script: the part of it that
is ours, without the picture. Errors in the console or requests to a network make the run fail."""
NODES = (100, 2_000, 20_000)
NEAR = "const v = latenttree.view; v.show({x: 0, y: 0, scale: 12});"
FAR = "latenttree.view.show(latenttree.view.fitted());"


def known_model(n_nodes: int, seed: int = 0) -> LatentTree:
    """A model of about so many nodes, as if it had been fitted to few samples of it."""
    p = max(3, round(n_nodes * 0.58))
    data = make_latent_tree(
        p, shape="random", edge_length=(0.05, 0.6), n_samples=200, random_state=seed
    )
    model = LatentTree(n_states=2)
    X = np.vstack([data.X, np.zeros((1, data.X.shape[1])), np.ones((1, data.X.shape[1]))])
    model.tree_ = data.tree.with_evidence(
        support=np.random.default_rng(seed).uniform(0.3, 1.0, data.tree.n_edges)
    )
    model.model_ = data.model
    table = as_table(X.astype(int))
    model.schema_ = Schema.of(X.astype(int), table)
    model.n_features_in_ = p
    model.diagnostics_ = Diagnostics.restored({}, model.tree_.support)
    return model


def measure(settings: Settings) -> dict[str, Any]:
    """A page of each size, with WebGL and without."""
    why = missing()
    if why is not None:
        raise DataError(f"this table drives a browser, and there is {why}", "see browser.py")
    rows, failed = [], []
    sizes = (100,) if settings.quick else NODES
    with tempfile.TemporaryDirectory() as folder:
        for n_nodes in sizes:
            model = known_model(n_nodes)
            path = Path(folder) / f"{n_nodes}.html"
            model.to_html(path)  # compiles
            written = timed(lambda model=model, path=path: model.to_html(path)).seconds
            for webgl in (True, False):
                row = {"nodes": model.tree_.n_nodes, "written": written} | drive(path, webgl)
                row["label"] = f"{model.tree_.n_nodes:,} nodes, {row['kind']}"
                rows.append(row | {"seconds": written})
                failed += [f"{row['label']}: {text}" for text in row.pop("troubles")]
    return {"rows": rows, "failed": failed}


def drive(path: Path, webgl: bool) -> dict[str, Any]:
    """Open and pan one page."""
    with browser(webgl=webgl) as driver:
        opened = timed(lambda: open_page(driver, path, webgl=webgl)).seconds
        driver.execute_script(FAR)
        whole = pan(driver)
        driver.execute_script(NEAR)
        near = pan(driver)
        troubles = console_errors(driver) + requests(driver)
    return {
        "kind": whole["kind"],
        "bytes": path.stat().st_size,
        "opened": opened,
        "whole": np.array(whole["times"])[:, 1].tolist(),
        "near": np.array(near["times"])[:, 1].tolist(),
        "script": float(np.median(np.array(whole["times"])[:, 0])),
        "troubles": troubles,
    }


def _frames(values: list[float]) -> str:
    return f"{np.median(values):.1f} ({np.percentile(values, 95):.1f})"


COLUMNS = (
    Column("tree", lambda row: f"{row['nodes']:,} nodes"),
    Column("drawn by", lambda row: row["kind"]),
    Column("MB", lambda row: number(row["bytes"] / 1e6, 2)),
    Column("written, s", lambda row: seconds(row["written"])),
    Column("opened, s", lambda row: seconds(row["opened"])),
    Column("pan, whole tree, ms", lambda row: _frames(row["whole"])),
    Column("pan, near, ms", lambda row: _frames(row["near"])),
    Column("of which script, ms", lambda row: number(row["script"], 1)),
)

TABLES = (
    Table(
        name="page",
        shows="pages to share: size, time to write and open, frames while panning",
        duration="2 min",
        title="One page to share",
        about=ABOUT,
        measure=measure,
        columns=COLUMNS,
    ),
)
