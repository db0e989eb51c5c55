"""Pictures with matplotlib: a `Tree` or a fitted model in, axes out.

`mixin.py` has the methods of the estimator. `tree_figure.plot_tree` draws any tree (read it first),
`pixel_figure.plot_pixel_tree` a tree over the pixels of an image; there is one file for each other
figure. `colors` reads `color_by`, `style` and `labels` say how nodes and edges look, `marks` and
`legends` draw the pieces, `canvas` makes and writes figures. Nothing here imports matplotlib before
it is called; `notebook` writes HTML without it.
"""
