"""What a graph and its cook tell: problems, events, figures of a frame, and what nodes warn of."""
