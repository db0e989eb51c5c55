"""Model + samples -> the model of largest penalised likelihood, by EM.

In: a model by moments, of `parameters`, and the samples. Out: the refined model, with the trace of
its objective. `stage.py` is the entry; read `em.py` first (the loop, for any problem), then
`tree_problem.py` and `gaussian/problem.py` (what is maximised), `tree_em.py` and `online_em.py`.
`minibatch_em.py` refines models of many states, for `search/growth.py`.
"""
