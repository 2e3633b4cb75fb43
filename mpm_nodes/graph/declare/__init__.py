"""How nodes and stages are declared: decorators, what they read off signatures, knobs, and the registry of all that there is."""
