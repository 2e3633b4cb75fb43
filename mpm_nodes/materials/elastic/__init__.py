"""Elastic parts: energies of a strain, without knobs of their own, for laws to be composed of (see `composition`)."""
