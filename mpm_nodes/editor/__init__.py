"""A node editor and cache viewer in the browser: a host like any other, which owns no truth.

The page (`web/`, built into `bundle/`) reads the specification, edits the text of a graph file, and draws frames. This server gives
it files below one folder, starts the command line in children, and hands on its events and the frames that a child reads.
"""
