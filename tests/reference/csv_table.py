"""A .csv with a row for each sample, read by Python's parser, column by column."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from latenttree.data import Table
from latenttree.data.columns.builder import TableBuilder
from latenttree.data.columns.vectors import Vector, vector_of_array
from latenttree.data.files.csv_cells import MISSING_CELLS, numbers_or_texts
from latenttree.data.files.text import open_text


def table_of_csv(path: Path, weights: str | None = None, ignore: Any = (), **options: Any) -> Table:
    with open_text(path) as file:
        header, *rows = (row for row in csv.reader(file) if row)
    columns = dict(zip(header, zip(*rows, strict=True), strict=True))
    counts = None if weights is None else np.array(columns.pop(weights), dtype=np.float64)
    keep = np.ones(len(rows), dtype=bool) if counts is None else counts > 0
    names = [name for name in columns if name not in ignore]
    vectors = [vector(columns[name], keep, name) for name in names]
    used = None if counts is None else counts[keep]
    return TableBuilder(weights=used, **options).table_of(vectors, names, int(keep.sum()))


def vector(texts: tuple[str, ...], keep: np.ndarray, name: str) -> Vector:
    cells = [text.strip() for text, kept in zip(texts, keep, strict=True) if kept]
    missing = np.array([cell in MISSING_CELLS for cell in cells])
    filler = next((cell for cell in cells if cell not in MISSING_CELLS), "0")
    known = [filler if lost else cell for cell, lost in zip(cells, missing, strict=True)]
    return replace(vector_of_array(numbers_or_texts(known), name, missing), scales=True)
