"""Model + samples -> the model of largest penalised likelihood, by EM.

In: a model by moments, of `parameters`, and the samples. Out: the refined model, with the trace of
its objective. `stage.py` is the entry; read `em.py` first (the loop), then `em_steps.py` (one step)
and `online_em.py` (a first pass over many samples). `gaussian/` does the same for Gaussian trees.
"""
