"""Packaged samples: graph files with their geometry, and what must be seen in each."""
