"""Dense foams that tear: Y15."""
