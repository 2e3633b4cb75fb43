"""Files as graphs and cooks read and write them: names, folders without links, JSON from outside, archives of arrays."""
