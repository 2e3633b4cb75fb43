"""Bodies that keep velocities of their own on the grid: they touch, slide and part (Bardenhagen 2000, Nairn 2013)."""
