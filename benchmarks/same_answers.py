"""Whether another version of the code gives the same answers: the command line of
`benchmarks.answers.command`, from any folder."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from benchmarks.answers.command import main

    sys.exit(main())
