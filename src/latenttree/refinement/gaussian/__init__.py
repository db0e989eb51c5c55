"""Refinement of a Gaussian tree by EM: `GaussianStart` in, `Fitted` out.

`condensed_rows` condenses the samples, `statistics` is the E-step, `problem` the M-step, `vectors`
writes parameters as a vector for extrapolation. Read `fitting.py` first.
"""
