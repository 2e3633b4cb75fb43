"""Values in memory: where published ones live, and what a node keeps between its calls."""
