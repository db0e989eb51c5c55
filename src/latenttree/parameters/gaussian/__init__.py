"""Parameters of a Gaussian tree by moments: tree and samples in, `GaussianStart` out.

`moments` estimates second moments from the values that are known, `reduction` projects wide leaves
to a few directions, `closed_form` turns moments into parameters. Read `start.py` first.
"""

from latenttree.parameters.gaussian.start import GaussianStart, gaussian_start

__all__ = ["GaussianStart", "gaussian_start"]
