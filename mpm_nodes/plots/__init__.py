"""Curves over the frames of caches and of problems with exact answers, and pictures of them.

What a cache holds is read by `cache_curves`, which needs no matplotlib: the editor's page shows the same panels. `pictures` draws
panels, `check_pictures` draws problems of `mpm-nodes verify`.
"""
