"""One simulation on several machines: who holds which blocks, what they exchange, and what they refuse."""
