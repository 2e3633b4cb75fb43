"""The sample graphs with their geometry; `shots` says how `mpm-nodes sample` cooks and draws them.

Installed as `mpm_nodes_samples`: the bare name `samples` is what many projects call such a folder, and two of them in one
environment would overwrite each other.
"""
