"""Houdini: digital assets generated from the host specification, their checker, and the code that runs inside Houdini.

No Houdini was at hand: the files follow public expanded assets and public documentation, and none has been loaded in Houdini.
`mpm_nodes_houdini` is the part that Houdini's own Python runs; it imports `hou` and the standard library, nothing else.
"""
