"""Check every Houdini asset in a folder, expanded or packed, against the rules of public ones; it needs no Houdini.

python -m tests.houdini_assets DIR          # 0 errors, 0 warnings; ends with 1 where there is an error
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from mpm_nodes.data import MpmNodesError
from tests.houdini_assets.check import check_folder


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what is wrong with the assets below a folder; 1 when there is an error."""
    command = argparse.ArgumentParser(prog="python -m tests.houdini_assets", description=__doc__.split("\n")[0], allow_abbrev=False)
    command.add_argument("folder", type=Path, metavar="DIR", help="a folder with assets, or one asset")
    try:
        assets, findings = check_folder(command.parse_args(arguments).folder)
    except MpmNodesError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    for finding in findings:
        print(finding)
    errors = sum(finding.is_error for finding in findings)
    print(f"{len(assets)} assets, {errors} errors, {len(findings) - errors} warnings")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
