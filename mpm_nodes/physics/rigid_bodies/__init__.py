"""Rigid bodies: colliders that matter, gravity and other bodies move, and joints between them (MuJoCo, Todorov 2012)."""
