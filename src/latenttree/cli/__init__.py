"""The command line: one function for each subcommand.

Heavy imports stand inside the functions, so that ``latenttree --help`` answers at once.
Errors of the user's making are one line on stderr and exit code 2 (1 where events are not in the
codes of a model); Ctrl-C is exit code 130, and files appear whole or not at all.
"""

from __future__ import annotations

from typing import Annotated

import typer

from latenttree.cli.answers import impute, sample, score, transform
from latenttree.cli.compiling import compile_kernels
from latenttree.cli.describe import show
from latenttree.cli.digits import demo
from latenttree.cli.learn import fit
from latenttree.cli.questions import query
from latenttree.cli.terminal import print_all_characters, with_typed_names

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


for _command in (demo, fit, show, query, score, transform, impute, sample):
    app.command()(with_typed_names(_command))
app.command("compile")(compile_kernels)
