"""Phenomena are tested on the scenes of the solver's tests."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "solver"))
