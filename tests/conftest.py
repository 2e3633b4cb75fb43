"""Settings of every test run."""

import os

# tests build hundreds of kinds of solves on caches of every age: none of them shall start processes beside it
os.environ.setdefault("MPM_NODES_COMPILE_HELPER", "0")
