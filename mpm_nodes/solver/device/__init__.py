"""Solves on a GPU: where arrays are, and loops that run there."""
