"""``python -m latenttree.cli``."""

from latenttree.cli import main

main()
