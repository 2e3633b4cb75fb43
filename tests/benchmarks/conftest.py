"""Benchmarks are scripts: their folders come onto the path as they do when a script runs."""

import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
sys.path[:0] = [str(FOLDER), str(FOLDER / "peers")]
