"""USD and OpenVDB caches, in and out. SI inside; scene units are converted here and nowhere else.

openvdb_module  finds OpenVDB            volumes  level sets and fogs to and from .vdb, and their meshes
points, meshes  one frame of geometry    stage    the root stage that ties the frames together
estimate        bytes before a run       check    what validators miss in a finished cache
"""
