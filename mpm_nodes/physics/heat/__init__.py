"""Heat: conduction, exchange with air and bodies, sources, melting and freezing."""
