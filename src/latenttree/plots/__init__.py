"""Pictures of trees with matplotlib: a `Tree` in, axes or a figure out.

`tree_figure.plot_tree` draws any tree (read it first), `pixel_figure.plot_pixel_tree` a tree over
the pixels of an image. `layout` computes where nodes go, `style` their colours and widths, `marks`
draws the pieces, `canvas` makes figures. Nothing here imports matplotlib before it is called.
"""
