"""What a graph file says: nodes, wires, knobs, substep graphs and their edits, and the same as Python builds and changes it."""
