"""Return maps: how the elastic strain of any law that names it gives way, for laws to be composed of (see `composition`)."""
