"""Trees and models in files and in the formats of other programs.

`archive` reads and writes whole models (.ltree) and is the file to read first; `treefile` trees
alone (.ltree, .json, .nwk); `exports` lists the formats of other programs, one file each, which
take an `Exported`. `mixin` has the methods of the estimator. In come models or paths; out go files
that appear whole or not at all (`atomic`), or models that were checked in every part. Below them
lie the containers (`zip_archive`, `npz`, `json_text`) and models as arrays (`model_arrays`,
`emission_arrays`). Newick text and NetworkX graphs are in `latenttree.tree`.
"""
