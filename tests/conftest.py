"""Settings of every test run."""

import os

from hypothesis import settings

from mpm_nodes.commands.packaged_samples import samples_folder

# tests build hundreds of kinds of solves on caches of every age: none of them shall start processes beside it
os.environ.setdefault("MPM_NODES_COMPILE_HELPER", "0")

# makes `mpm_nodes_samples` this checkout's, also where an older copy is installed
samples_folder()

# how long an example takes says how busy the machine is, and the first one compiles
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
