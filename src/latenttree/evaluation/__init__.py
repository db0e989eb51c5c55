"""Known truth, and how far an estimate is from it.

`datasets` draws samples from known models, `metrics` compares trees and models, `baselines` are
other structure learners. Public as `latenttree.datasets`, `latenttree.metrics` and
`latenttree.baselines`.
"""
