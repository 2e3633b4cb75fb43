"""Test the extension in other Blenders: `python -m tests.blenders` takes 4.2, 4.5 and 5.2, a wheel of bpy each.

A version can name its Python, where that is not `python3.11` or `python3.13` on the path:
`python -m tests.blenders 5.2=/opt/python/bin/python3`. What is installed stays in `.blenders`.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ("4.2", "4.5", "5.2")
"""Versions of Blender with long-term support."""
PYTHONS = ((5, 1), "python3.11", "python3.13")
"""From which Blender on its wheels are for another Python, and the two."""


def installed(folder: Path, version: str, python: str) -> Path:
    """Return the Python of an environment with the newest wheel of a version, made where it is not there yet."""
    program = folder / version / "bin" / "python"
    if not (folder / version / "pyvenv.cfg").is_file():
        subprocess.run([python or newest(version), "-m", "venv", folder / version], check=True)
    subprocess.run([program, "-m", "pip", "install", "-q", f"bpy=={version}.*"], check=True)
    return program


def newest(version: str) -> str:
    """Return the name of the Python that the wheels of a version of Blender are for."""
    since, older, newer = PYTHONS
    return newer if tuple(map(int, version.split("."))) >= since else older


def main() -> int:
    """Test each version in turn, and print one line a version at the end."""
    command = argparse.ArgumentParser(prog="python -m tests.blenders", description=__doc__.split("\n")[0])
    command.add_argument("versions", nargs="*", default=VERSIONS, metavar="VERSION[=PYTHON]", help="(default: 4.2 4.5 5.2)")
    command.add_argument("--folder", type=Path, default=ROOT / ".blenders", metavar="DIR", help="where they are installed")
    command.add_argument("--also", default="", metavar="ARGUMENTS", help='of pytest, as in --also "-k quick -x"')
    args = command.parse_args()
    told = {}
    for asked in args.versions:
        version, _, python = asked.partition("=")
        try:
            program = installed(args.folder.resolve(), version, python)
        except (OSError, subprocess.CalledProcessError) as error:
            told[version] = f"cannot be installed: {error}"
            continue
        files = sorted((ROOT / "tests" / "hosts").glob("test_blender_*.py"))
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-m", "not slow", *files, *shlex.split(args.also)],
            env={**os.environ, "MPM_NODES_TEST_BPY_PYTHON": str(program)},
            cwd=ROOT,
            check=False,
        )
        told[version] = "passed" if done.returncode == 0 else f"failed (pytest ended with {done.returncode})"
    for version, words in told.items():
        print(f"Blender {version}: {words}")
    return int(any(words != "passed" for words in told.values()))


if __name__ == "__main__":
    sys.exit(main())
