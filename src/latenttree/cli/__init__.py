"""The command line: files and options in, printed lines and files out.

A file for each command, named for it (read `fit.py` first); `options.py` declares the options that
commands share. `wording.py` turns texts of the library into the words of the command line.
Errors that a user can cause are one line on stderr and exit code 2 (1 where a model does not know
the codes of the events); Ctrl-C is exit code 130. Files appear whole or not at all. Heavy imports
stand inside the functions, so that ``latenttree --help`` answers at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from latenttree.cli.compile import compile_command
from latenttree.cli.demo import demo_command
from latenttree.cli.exits import clean_exit
from latenttree.cli.fit import fit_command
from latenttree.cli.impute import impute_command
from latenttree.cli.options import with_flat_options
from latenttree.cli.query import query_command
from latenttree.cli.sample import sample_command
from latenttree.cli.score import score_command
from latenttree.cli.show import show_command
from latenttree.cli.terminal import print_all_characters, with_typed_names
from latenttree.cli.transform import transform_command

COMMANDS: dict[str, Callable[..., None]] = {
    "demo": demo_command,
    "fit": fit_command,
    "show": show_command,
    "query": query_command,
    "score": score_command,
    "transform": transform_command,
    "impute": impute_command,
    "sample": sample_command,
    "compile": compile_command,
}
"""Commands in the order of ``--help``."""

app = typer.Typer(
    help="Learn latent tree models: which hidden variables a table has, the tree over them, and "
    "every probability.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Entry point of the ``latenttree`` command."""
    print_all_characters()
    app()


@app.callback(invoke_without_command=True)
def _top(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from latenttree import __version__

        print(f"latenttree {__version__}")
        raise typer.Exit


for _name, _command in COMMANDS.items():
    app.command(_name)(with_typed_names(with_flat_options(clean_exit()(_command))))
