"""Rigid bodies in projected substeps: water bears and carries them, and they move by themselves in it."""
