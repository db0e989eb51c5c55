"""Columns of a file that are no variables: numbers of rows, identifiers."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence

from latenttree.data.checks import listing
from latenttree.errors import DataError


def check_excluded(
    header: Sequence[str], ignore: Collection[str], file: str, known: Collection[str] = ()
) -> None:
    """The ignored columns exist, and a first column without a name is one of them or `known`."""
    absent = [name for name in ignore if name not in header]
    if absent:
        raise DataError(
            f"--ignore {shlex.quote(absent[0])}: {file} has no such column",
            f"the columns are {listing(header)}",
            value=absent[0],
            path=file,
            option="ignore",
        )
    if len(header) > 1 and not header[0].strip() and header[0] not in {*ignore, *known}:
        raise DataError(
            f"{file}: the first column has no name and numbers the rows",
            f"write the table with index=False, or pass --ignore {shlex.quote(header[0])} (if it "
            "is a variable, name it)",
            column=header[0],
            path=file,
        )
