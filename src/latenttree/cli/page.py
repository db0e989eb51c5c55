"""``latenttree page``: a model as a web page to share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from latenttree.cli.commands import Page
from latenttree.cli.model_file import load_model
from latenttree.cli.printing import new_console, new_progress, print_file
from latenttree.errors import DataError
from latenttree.io.atomic import check_target
from latenttree.phrases import counted


def run(asked: Page) -> None:
    """Write the page."""
    check_target(asked.out, (".html", ".htm"), "{} is no web page", "end its name in .html")
    columns = None if asked.columns is None else read_columns_file(asked.columns)
    fitted = load_model(asked.model, asked.threads)
    with new_progress().stage("page"):
        fitted.to_html(
            asked.out,
            color_by=asked.color_by,
            columns=columns,
            title=asked.title,
            levels=asked.topics,
        )
    what = counted(fitted.tree_.n_nodes, "node")
    print_file(new_console(), f"a page of {what}", asked.out)


def read_columns_file(path: Path) -> Any:
    """The table in a .csv or .parquet; the first column of a .csv holds names, and is text."""
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        from pyarrow import parquet

        return parquet.read_table(path)
    if suffix != ".csv":
        what = f"--columns {path} is neither .csv nor .parquet"
        raise DataError(what, "write the table as .csv", path=str(path), option="columns")
    import pyarrow as pa
    from pyarrow import csv

    with csv.open_csv(path) as opened:
        first = opened.schema.names[0]
    return csv.read_csv(path, convert_options=csv.ConvertOptions(column_types={first: pa.string()}))
