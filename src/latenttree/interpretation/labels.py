"""What variables, and coordinates of those that are vectors, are called."""

from __future__ import annotations

from latenttree.data import Schema
from latenttree.interpretation.channels import Channels

REVERSED = " (-)"
"""Mark of a variable that has less where a hidden variable has more."""


def item_name(schema: Schema, channels: Channels, node: int) -> str:
    """The name of a variable, or "group[code]" of a coordinate."""
    v, c = int(channels.variables[node]), int(channels.coordinates[node])
    name = schema.names[v]
    return name if c < 0 else f"{name}[{schema.codes_of(v)[c]}]"


def marked(name: str, direction: int) -> str:
    """The name, with a mark where it has less."""
    return name + (REVERSED if direction < 0 else "")
