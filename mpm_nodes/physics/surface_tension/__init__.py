"""Surface tension, C21: what surfaces pull at, exchange and let evaporate, where they touch bodies and other liquids."""
