"""Exceptions that callers may want to catch by name."""


class DataError(ValueError):
    """The data cannot be used as given; the message says where, why, and what to do."""
