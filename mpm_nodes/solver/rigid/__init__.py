"""Rigid bodies that matter moves: MuJoCo's model of them, and their coupling to the contacts of the grid."""
