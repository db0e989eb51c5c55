"""The paper's tables and figures, run on this machine: ``latenttree bench NAME``.

Each table is a module with `TITLE`, `ABOUT` and `run(settings) -> record`, a record being what the
JSON file holds; and with `show(record, console)`, `grid(record)`, `draw(record) -> Figure` where it
is not the common table of whole fits. A row is fitted in a process of its own, so that its peak
memory is its own; the data are drawn in another. Nothing heavy is imported before a table is asked
for.
"""

from __future__ import annotations

TABLES = {
    "synthetic": "latenttree.bench.synthetic",
    "large-d": "latenttree.bench.large_d",
    "nips": "latenttree.bench.nips",
    "nytimes": "latenttree.bench.nytimes",
    "patients": "latenttree.bench.patients",
    "threads": "latenttree.bench.threads",
    "words100k": "latenttree.bench.words100k",
    "growth": "latenttree.bench.growth",
    "rivals": "latenttree.bench.rivals_table",
    "heldout": "latenttree.bench.heldout",
}
"""The module of each table, in the order of the page."""
