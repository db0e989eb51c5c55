"""What a version of the code answers on many small data sets.

`tasks` lists them; `by_family`, `by_container`, `by_option` and `by_file` add them. `learning` fits
them, `asking` asks, `comparing` compares; read `command` first.
"""
