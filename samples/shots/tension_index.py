"""The samples of C21: surface tension; and one that joins its method with heat and viscosity."""

from __future__ import annotations

from mpm_nodes_samples.shots.entries import Camera, PaperSize, Sample


def _c21(particles: int, cells: int, *overrides: str, without: tuple[str, ...] = (), step: float = 0.0) -> PaperSize:
    """Return a paper size of C21: cells of 1 / `cells` m, three frames; 0 particles and 0 s a step where it states none."""
    changed = (f"settings.cell_size={1.0 / cells:.9g}", "settings.end=4", *overrides)
    return PaperSize(particles, 0.0, changed, without, machine="24 cores", step=step)


TENSION = (
    Sample(
        "ellipse",
        "An ellipse swings under its own tension and keeps momentum and centre; beside it one with massless samples, which drifts.",
        "C21 figure 6",
        _c21(0, 63, "swing.dt_max=1e-4", "swing_massless.dt_max=1e-4", "liquid.bulk_modulus=4166.67"),
        camera=Camera((0.0, 0.0, 2.0), (0.0, 0.0, 0.0), 1.4, (640, 294)),
    ),
    Sample(
        "drop_impacts",
        "Five drops fall on a floor that repels them: with much tension they bounce, with little they spread.",
        "C21 figure 7",
        _c21(
            794_000,
            127,
            "drop_2.centre=[0,0.276,0]",
            "liquid_2.bulk_modulus=83333.33",
            "fall.dt_max=0.01",
            without=("drop_1", "drop_3", "drop_4", "drop_5"),
            step=12.289,
        ),
        camera=Camera((0.0, 2.2, 9.0), (0.0, 0.1, 0.0), 0.92, (960, 300)),
    ),
    Sample(
        "drops_on_ramps",
        "Drops fall on four ramps that they wet more or less: what wets more is dragged along more slowly.",
        "C21 figure 8",
        _c21(70_000, 63, "liquid.bulk_modulus=83333.33", "slide.dt_max=0.01", without=("drop_2", "drop_3", "drop_4"), step=1.692),
        camera=Camera((1.6, 2.2, 4.2), (0.45, 0.0, 0.0), 1.5, (640, 400)),
    ),
    Sample(
        "heated_cavity",
        "A cavity without a lid, hot on the left: the surface is pulled to the cold side and stirs the liquid.",
        "C21 figure 9",
        _c21(
            0,
            63,
            'stir.substeps={"preset": "implicit_surface_tension", "set": {"slab": "z", "radius": 0.73}}',
            "stir.wall_high=[1,9,0.031746032]",
            "box.size=[1,0.936508,0.031746032]",
            "box.centre=[0.5,0.468254,0.015873016]",
        ),
        camera=Camera((0.5, 0.5, 3.0), (0.5, 0.5, 0.0), 2.3, (640, 640)),
        colour_by="temperature",
    ),
    Sample(
        "drops_on_plates",
        "Four drops come to lie on glass, plastic, wax and soot, each at the angle of its plate.",
        "C21 figure 10",
        _c21(
            230_000,
            127,
            "settings.cell_size=3.158e-5",
            "liquid.bulk_modulus=750000",
            without=(
                "drop_1",
                "drop_3",
                "drop_4",
                "plate_1",
                "plate_3",
                "plate_4",
                "glass",
                "wax",
                "soot",
                "glass_look",
                "wax_look",
            ),
            step=4.778,
        ),
        camera=Camera((0.0, 0.0036, 0.0125), (0.0, 0.0002, 0.0), 1.15, (960, 360)),
    ),
    Sample(
        "soap_on_water",
        "A drop of soap lowers the tension of the water under it: the surface pulls the water from the centre to the walls.",
        "C21 figure 11",
        _c21(
            4_000_000,
            127,
            "settings.cell_size=0.00464",
            "pool.size=[1,0.05,1]",
            "pool.centre=[0,0.025,0]",
            "drop.size=[0.25,0.0125,0.25]",
            "drop.centre=[0,0.05625,0]",
            "spread.wall_low=[-0.5,0,-0.5]",
            "spread.wall_high=[0.5,1,0.5]",
            "liquid.bulk_modulus=16666.67",
            step=37.47,
        ),
        camera=Camera((0.0, 0.34, 0.3), (0.0, 0.02, 0.0), 1.5, (640, 534)),
        colour_by="concentration",
    ),
    Sample(
        "candles",
        "Four candles burn for a while: the more tension the molten wax has, the less it spreads; what has run freezes again.",
        "C21 figure 13",
        _c21(
            618_000,
            127,
            "mild_solid.youngs_modulus=100000",
            "mild_liquid.bulk_modulus=83333.33",
            'burn.substeps.flames=["-0.45 0"]',
            "burn.time_scale=1",
            without=tuple(f"{name}_{part}" for name in ("loose", "firm", "tight") for part in ("body", "candle")),
            step=30.582,
        ),
        camera=Camera((0.0, 1.9, 4.6), (0.0, 0.17, 0.0), 1.45, (960, 300)),
    ),
    Sample(
        "candle_letters",
        "Candles shaped as letters melt in a tray: their pools become one, which freezes when the flames are out.",
        "C21 figure 14",
        _c21(0, 127, "wax_solid.youngs_modulus=100000", "wax_liquid.bulk_modulus=83333.33", "burn.time_scale=1", step=177.388),
        camera=Camera((0.0, 1.25, 0.95), (0.0, 0.03, 0.02), 1.35, (640, 420)),
    ),
    Sample(
        "tears_of_wine",
        "A band of wine runs down the wall of a glass: its alcohol evaporates, its tension grows, and it comes to the pool.",
        "C21 figure 12",
        _c21(0, 127, "run.dt_max=0.01", "band.prim=fine_band", "bowl.voxel_size=0.00787"),
        camera=Camera((0.5, 1.1, 1.9), (0.5, 0.48, 0.3), 1.6, (640, 640)),
    ),
    Sample(
        "metal_drop",
        "A drop of metal that is heated on one side propels itself where the floor rubs; without friction it stays in its place.",
        "C21 figure 15",
        _c21(235_000, 127, "liquid.bulk_modulus=83333.33", "heat.dt_max=0.01", without=("drop_2", "cold_2"), step=42.047),
        camera=Camera((0.55, 0.85, 1.6), (-0.26, 0.04, 0.02), 1.35, (640, 400)),
    ),
    Sample(
        "beads_on_string",
        "A thread of a polymer's solution gathers into beads, which stay joined by a string that its polymers hold.",
        "R15, held against Clasen 2006",
        PaperSize(0, 0.0, ("settings.cell_size=0.1", "settings.end=4")),
        camera=Camera((21.0, 21.0, 7.0), (0.4, 0.4, 7.0), 1.9, (960, 280)),
    ),
    Sample(
        "honey",
        "Honey runs off the lips of a warm and of a cold spoon: the warm one's is thinner and comes first.",
        "surface tension, heat and implicit viscosity in one graph",
        PaperSize(0, 0.0, ("settings.cell_size=0.0004", "surface.voxel_size=0.0002")),
        camera=Camera((0.0, 0.045, 0.18), (-0.006, 0.0255, 0.0), 2.55, (640, 614)),
        colour_by="temperature",
    ),
)
"""In the order in which they are listed."""
