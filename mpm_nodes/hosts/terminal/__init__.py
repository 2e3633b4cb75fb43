"""A host in a terminal: one file that needs Python alone, and knows the nodes from the host specification."""
