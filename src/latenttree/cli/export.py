"""``latenttree export``: a model or a tree in the formats of other programs."""

from __future__ import annotations

from latenttree.cli.commands import Export
from latenttree.cli.model_file import holds_model, read_model
from latenttree.cli.printing import new_console, print_file
from latenttree.errors import DataError
from latenttree.io.exported import Exported
from latenttree.io.exports import check_export, write_export
from latenttree.io.treefile import load_tree


def run(asked: Export) -> None:
    """Write the files that the suffix asks for."""
    target = check_export(asked.out)
    if target.exists() and target.samefile(asked.file):
        raise DataError(f"{target} is the file that is read", "write to another", path=str(target))
    if holds_model(asked.file):
        written = read_model(asked.file).export(target)
    else:
        saved = load_tree(asked.file)
        written = write_export(target, Exported(saved.tree, saved.support))
    console = new_console()
    for path in written:
        print_file(console, "written", path)
