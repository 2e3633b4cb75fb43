"""Where the benchmarks lie."""

from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
