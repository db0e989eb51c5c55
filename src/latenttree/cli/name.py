"""``latenttree name``: names of hidden variables, kept in the file of the model."""

from __future__ import annotations

from latenttree.cli.commands import Name
from latenttree.cli.model_file import read_model
from latenttree.cli.printing import new_console, print_file
from latenttree.errors import DataError
from latenttree.io.archive import check_archive_path
from latenttree.phrases import counted


def run(asked: Name) -> None:
    """Name a hidden node, or all of them, and write the model."""
    if (asked.node is None) != (asked.name is None):
        what = f"{asked.node!r} has no new name"
        raise DataError(what, "write it behind: MODEL NODE NAME", value=asked.node)
    out = check_archive_path(asked.out or asked.model)
    fitted = read_model(asked.model)
    if asked.node is None or asked.name is None:
        fitted.name_hidden(asked.words)
        what = f"{counted(fitted.tree_.n_hidden, 'hidden variable')} named"
    else:
        fitted.name(asked.node, asked.name)
        what = f"{asked.node} is {asked.name!r}"
    fitted.save(out)
    print_file(new_console(), what, out)
