"""Figures of the tables."""
