"""Matter that melts and freezes and keeps its volume: heat and projection on one staggered grid."""
