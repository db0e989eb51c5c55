"""The tables: one file each, see `registry.py`."""
