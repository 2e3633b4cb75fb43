"""Make the body of the melting samples: melting.vdb, a hare that sits up.

python samples/make_melting_bodies.py            (needs everything: pip install "mpm-nodes[all]")

The source has a bunny of chocolate. This one is made of ellipsoids; its ears, paws and tail are the corners that melt first.
"""

from __future__ import annotations

import sys
from pathlib import Path

from make_bodies import Distance, ellipsoid, joined, level_set

from usd_io.volumes import write_volumes

HERE = Path(__file__).parent


def hare() -> Distance:
    """Sits on y = 0 and looks along x, 0.11 m high: haunches, chest, head, muzzle, two ears, four paws, a tail."""
    sides = [part for side in (-1.0, 1.0) for part in (
        ellipsoid((-0.007, 0.0855, side * 0.0095), (0.0075, 0.0250, 0.0060), 12.0),
        ellipsoid((0.018, 0.0060, side * 0.0190), (0.0190, 0.0075, 0.0085)),
        ellipsoid((0.026, 0.0270, side * 0.0120), (0.0065, 0.0150, 0.0060), -20.0))]  # fmt: skip
    parts = [
        ellipsoid((-0.006, 0.0220, 0.0), (0.0290, 0.0225, 0.0270)),
        ellipsoid((0.006, 0.0380, 0.0), (0.0200, 0.0240, 0.0195)),
        ellipsoid((0.011, 0.0610, 0.0), (0.0185, 0.0165, 0.0165)),
        ellipsoid((0.026, 0.0570, 0.0), (0.0090, 0.0080, 0.0090)),
        ellipsoid((-0.036, 0.0170, 0.0), (0.0095, 0.0095, 0.0095)),
    ]
    return joined([*parts, *sides], 0.006)


def main(target: Path) -> None:
    """Write the file into a folder."""
    body = level_set("hare", hare(), (0.05, 0.12, 0.04), 1e-3)
    write_volumes(target / "melting.vdb", [body], half=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
