"""Benchmarks are scripts: their folders come onto the path as they do when a script runs."""

import sys

from benchmark_folder import FOLDER

sys.path[:0] = [str(FOLDER), str(FOLDER / "peers")]
