"""Exact inference on a tree model, batched over samples: belief propagation and what follows.

In: a model and `Evidence` on samples; out: likelihoods, posteriors, expected counts, messages,
states. `Inference` chooses between two backends. `dense` walks the whole tree for lanes of samples
side by side; `sparse` answers rows of zeros and ones one by one, through the nodes above their ones
alone. Probabilities are scaled, never logarithms, but where a product could leave the range of
floats. Read `interface.py` first.
"""

from latenttree.model.inference.evidence import Evidence
from latenttree.model.inference.interface import Inference, Posteriors

__all__ = ["Evidence", "Inference", "Posteriors"]
