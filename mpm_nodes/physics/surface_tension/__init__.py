"""Surface tension with heat and solutes: what surfaces exchange, what spreads along them and evaporates."""
