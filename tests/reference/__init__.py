"""Slow, obvious versions of what the package does fast, and random inputs for both."""
