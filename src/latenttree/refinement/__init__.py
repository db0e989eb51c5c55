"""Model + samples -> the model of largest penalised likelihood, by EM.

In: a model to start from and the samples. Out: the refined model, with the trace of its objective.
Read `em.py` first.
"""
