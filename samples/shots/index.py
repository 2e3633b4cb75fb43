"""The list of samples: their graphs, their two sizes, and their cameras."""

from __future__ import annotations

from mpm_nodes.data import InputError
from mpm_nodes.data.suggestions import nearest
from mpm_nodes_samples.shots.entries import Camera, PaperSize, Sample
from mpm_nodes_samples.shots.tension_index import TENSION

PAPER_FRAMES = 4
"""The first pose and three cooked frames."""


def _paper(solve: str, particles: int, minutes: float, cell_size: float, dt: float, without: tuple[str, ...] = ()) -> PaperSize:
    """Return a paper size: frames of 1/30 s, the grid's cell and the time step."""
    frames = ("settings.fps=30", f"{solve}.time_scale=1", f"settings.end={PAPER_FRAMES}")
    steps = (f"{solve}.substeps.resampling_interval=50", f"settings.cell_size={cell_size:g}", f"{solve}.dt_max={dt:g}")
    return PaperSize(particles, minutes, (*frames, *steps), without)


def _viscoelastic(
    particles: int,
    minutes: float,
    threads: int,
    cell_size: float,
    fps: float,
    sheet: tuple[int, ...],
    overrides: tuple[str, ...] = (),
    without: tuple[str, ...] = (),
) -> PaperSize:
    """Return a paper size of R15: its grid's cell, the quick size's frames up to the last of the three that are looked at.

    `fps` are the frames in a second of what is simulated, whatever the shot shows.
    """
    changed = (f"settings.cell_size={cell_size:g}", f"settings.end={sheet[-1]}", *overrides)
    return PaperSize(particles, minutes, changed, without, machine=f"{threads} threads", share=fps / 30.0, sheet=sheet)


def _melting(
    solve: str, particles: int, minutes: float, cell_size: float, overrides: tuple[str, ...] = (), still: tuple[str, ...] = ()
) -> PaperSize:
    """Return a paper size of S14: three frames of 1/30 s, its particles and time step; its grids have more particles a cell.

    Where it prints neither particles nor minutes, `particles` are as many as its other examples have, and `minutes` are 0.
    """
    frames = ("settings.fps=30", f"{solve}.time_scale=1", f"settings.end={PAPER_FRAMES}")
    changed = (*frames, f"settings.cell_size={cell_size:g}", f"{solve}.dt_max=3e-4", *overrides)
    return PaperSize(particles, minutes, changed, still=still, machine="16 cores")


_WHOLE_FLOW = ("vent.size=[1.2,0.06,0.8]", "vent.centre=[0.0054,0.0305,0.0]", "vent.rotation=[0.0,0.0,-10.0]")
"""Lava that lies on its slope as a whole: the source's particles are those of a flow that has come out."""

_WHOLE_RIBBON = ("slit.size=[0.0125,0.16,0.0625]", "slit.centre=[0.0,0.0815,0.0]")
"""Caramel that hangs above its marble as a whole, for as many particles."""

_REAL_CRUST = (
    "throw.time_scale=0.04",
    "crust.shear_modulus=5e6",
    "crust.lame_parameter=4e7",
    'throw.substeps={"preset": "explicit_apic", "set": {"elastic_cfl": 0.7}}',
    *(f"{part}.translation=[0.0224,0.0059,0.0078]" for part in ("filling", "shell", "scores")),
)
"""The crust of the source's table, and the pie just before it touches the face.

Its waves alone limit the step: 0.7 cells a step move it as 0.5 do (at cells of 1 mm; 0.9 shakes it, 1.1 blows it up).
"""

SAMPLES: dict[str, Sample] = {
    sample.name: sample
    for sample in (
        Sample(
            "shaving_foam",
            "A dollop of shaving cream under a block that swings to and fro: it jiggles, necks, tears and falls.",
            "Y15 figures 1 and 3",
            _paper("shake", 54_695, 57.5, 3e-3, 1e-5),
            camera=Camera((0.20, 0.15, 0.44), (0.006, 0.106, 0.0), 2.7, (480, 672)),
        ),
        Sample(
            "uniform_smore",
            "A soft marshmallow is pressed between crackers, seeps through holes, and leaves a stiff peak.",
            "Y15 figure 10",
            _paper("press", 202_278, 111.9, 1.6e-3, 1e-5),
            camera=Camera((0.16, 0.16, 0.35), (0.0, 0.078, 0.0), 2.75, (480, 696)),
        ),
        Sample(
            "toasted_smore",
            "A marshmallow with a stiff toasted shell is crushed: the shell cracks, the soft core flows out.",
            "Y15 figure 11",
            _paper("press", 981_554, 160.2, 1e-3, 1e-5),
            camera=Camera((0.106, 0.115, 0.212), (0.0, 0.029, 0.0), 1.95, (640, 506)),
        ),
        Sample(
            "pie",
            "A whipped-cream pie is thrown at a monkey's head: it splashes, tears, and chunks stay on the face.",
            "Y15 figure 12",
            _paper("throw", 725_052, 245.7, 1.6e-3, 1e-5),
            camera=Camera((0.39, 0.11, 0.70), (0.0, -0.06, 0.0), 1.8, (640, 534)),
        ),
        Sample(
            "spheres",
            "Two spheres that differ in the power of their flow law alone: one flows on impact, oobleck rebounds.",
            "Y15 figure 13",
            _paper("drop", 519_171, 303.0, 1.6e-3, 5e-6, ("viscoplastic_ball",)),
            camera=Camera((0.09, 0.23, 0.70), (-0.014, 0.045, 0.0), 1.74, (640, 260)),
        ),
        Sample(
            "pachinko",
            "Penguins of oobleck fall through pins: they bounce while fast, and lose their shape where pins are close.",
            "Y15 figure 14",
            _paper("fall", 24_691, 324.6, 1.8e-3, 5e-6),
            camera=Camera((0.34, 0.52, 1.35), (0.0, 0.315, 0.0), 2.8, (480, 760)),
        ),
        Sample(
            "tendril",
            "Three columns of one paste are pulled apart: torn and healing, torn for good, and without tearing.",
            "Y15 figures 7 and 8",
            None,
            camera=Camera((0.03, 0.07, 0.23), (0.0, 0.048, 0.0), 1.6, (640, 534)),
        ),
        Sample(
            "threads",
            "Paste is pulled to threads that are thinner than the grid: on the left they stay, on the right they are removed.",
            "Y15 figure 8",
            None,
            camera=Camera((0.08, 0.14, 0.286), (0.0, 0.078, 0.0), 2.2, (480, 672)),
        ),
        Sample(
            "twisted_sponge",
            "A bar of sponge is twisted by its ends: it winds up, tears, and folds onto itself.",
            "R15 figure 1",
            _viscoelastic(910_000, 5.3, 20, 3.66e-3, 8, (13, 23, 27), ("bar.seeding=lattice",)),
            camera=Camera((0.48, 0.20, 0.856), (0.01, -0.005, 0.0), 2.3, (480, 696)),
        ),
        Sample(
            "sponge_bullet",
            "A bullet flies through a sponge: it opens a cavity, tears through, and the sponge swings back.",
            "R15 figure 3",
            _viscoelastic(720_000, 2.0, 16, 4.02e-3, 80, (5, 8, 16)),
            camera=Camera((0.43, 0.30, 0.857), (0.044, -0.005, 0.0), 1.7, (640, 400)),
        ),
        Sample(
            "foam_stream",
            "A stream of shaving foam falls on the floor: it buckles into S-shaped folds, piles up and merges.",
            "R15 figure 6",
            _viscoelastic(1_100_000, 0.93, 12, 1.9e-4, 24, (10, 20, 35)),
            camera=Camera((0.035, 0.035, 0.105), (0.0, 0.0165, 0.0), 1.8, (640, 640)),
        ),
        Sample(
            "toothpaste",
            "A strand of toothpaste falls on a brush that is drawn along: it coils, and its coils flow together.",
            "R15 figure 5",
            _viscoelastic(280_000, 0.28, 16, 8.2e-4, 24, (15, 27, 39)),
            camera=Camera((0.14, 0.14, 0.30), (0.0, 0.042, 0.0), 1.65, (640, 480)),
        ),
        Sample(
            "viennetta",
            "A sheet of ice cream is poured on a moving belt and lays itself in even folds.",
            "R15 figure 2",
            _viscoelastic(1_200_000, 1.11, 12, 2.6e-4, 20, (14, 34, 54)),
            camera=Camera((0.055, 0.036, 0.14), (0.033, 0.0085, 0.0), 1.5, (640, 250)),
        ),
        Sample(
            "scored_pie",
            "A pie with a stiff, scored crust hits a head: the crust breaks along its scores, the cream splashes.",
            "R15 figure 4",
            _viscoelastic(1_300_000, 23.6, 12, 2.4e-4, 600, (2, 3, 4), _REAL_CRUST),
            camera=Camera((0.13, 0.06, 0.10), (0.012, 0.0, 0.0), 2.0, (640, 480)),
        ),
        Sample(
            "pool_at_rest",
            "Two pools at rest: with control volumes one stays so, without them water rises along the walls of the other.",
            "S14 figure 7",
            _melting("with", 819_200, 0.0, 0.0125, ("without.dt_max=3e-4",)),
        ),
        Sample(
            "candied_apple",
            "An apple is pulled out of hot candy into cold air: its coat runs, drips, and hardens.",
            "S14 figure 2",
            _melting("dip", 800_000, 11.0, 1.71e-3),
            camera=Camera((0.26, 0.2, 0.34), (0.0, 0.066, 0.0), 2.0, (640, 640)),
            colour_by="temperature",
        ),
        Sample(
            "hot_air",
            "A hare of chocolate melts in hot air: ears, paws and tail go first.",
            "S14 figure 8",
            _melting("melt", 1_200_000, 11.4, 9.74e-4),
            camera=Camera((0.16, 0.12, 0.22), (0.0, 0.048, 0.0), 1.75, (640, 640)),
            colour_by="temperature",
        ),
        Sample(
            "hot_stream",
            "Hot chocolate is poured on the head of a cold hare: some of the hare melts, some of the stream sets.",
            "S14 figure 10",
            _melting("melt", 1_200_000, 8.4, 1.003e-3),
            camera=Camera((0.19, 0.13, 0.25), (0.015, 0.052, 0.0), 1.35, (640, 640)),
            colour_by="temperature",
        ),
        Sample(
            "marshmallow_on_plate",
            "A toasted marshmallow melts on a hot plate: it softens from below, its crust tears, and it sinks into itself.",
            "S14 and Y15 in one graph",
            _melting("melt", 1_000_000, 0.0, 1e-3),
            camera=Camera((0.09, 0.08, 0.15), (0.0, 0.018, 0.0), 1.25, (640, 640)),
            colour_by="temperature",
        ),
        Sample(
            "butter_on_pan",
            "A cold pat of butter on a hot, tilted pan: it melts from below, and what is solid slides on the melt.",
            "S14 figure 3",
            _melting("melt", 4_200_000, 14.5, 4.24e-4),
            camera=Camera((0.06, 0.14, 0.22), (0.01, 0.0, 0.01), 1.5, (640, 400)),
            colour_by="temperature",
        ),
        Sample(
            "wax",
            "Four blocks of wax on a hot plate differ in their latent heat alone: the first melts fastest.",
            "S14 figure 5",
            _melting("melt", 1_000_000, 0.0, 1.14e-3),
            colour_by="temperature",
        ),
        Sample(
            "lava",
            "Lava comes in pulses, flows down a slope, and cools: each pulse lies on the last one as an arc.",
            "S14 figure 1",
            _melting("run", 3_500_000, 29.7, 5.09e-3, _WHOLE_FLOW, ("flow",)),
            camera=Camera((0.55, 0.75, 1.0), (-0.3, 0.05, 0.0), 1.5, (640, 420)),
            colour_by="temperature",
            white=8000.0,
        ),
        Sample(
            "caramel",
            "A ribbon of caramel is poured on cold marble and stiffens while it folds.",
            "R15 and S14 in one graph",
            _melting("pour", 1_000_000, 0.0, 1e-3, _WHOLE_RIBBON, ("ribbon",)),
            camera=Camera((0.055, 0.078, 0.155), (-0.003, 0.0405, 0.0), 1.34, (640, 560)),
            colour_by="temperature",
        ),
        Sample(
            "ice_in_water",
            "Two cubes of ice fall into warm water, float, and melt.",
            "S14, the whole method; densities by phase",
            _melting("melt", 1_000_000, 0.0, 3e-3),
            colour_by="temperature",
        ),
        Sample(
            "letters",
            "Letters from soft rubber to incompressible clay are dropped together.",
            "S14 figure 9",
            _melting("drop", 1_000_000, 18.5, 3.41e-3),
            camera=Camera((0.5, 0.8, 1.85), (-0.135, 0.335, 0.0), 2.4, (640, 614)),
        ),
        *TENSION,
        Sample(
            "footprints",
            "A shoe steps into mud, rolls and is lifted: mud sticks to its sole and pulls strings.",
            "chosen here",
            None,
            camera=Camera((-0.36, 0.5, 0.6), (-0.05, 0.085, 0.0), 1.4, (640, 480)),
        ),
        Sample(
            "broken_chocolate",
            "A bar of chocolate is broken by hands: its own mesh comes apart, and the pieces keep their edges.",
            "chosen here",
            None,
            camera=Camera((0.03, 0.15, 0.34), (0.0, 0.052, 0.0), 1.45, (640, 400)),
        ),
        Sample(
            "ball_on_jelly",
            "A ball of wood falls on jelly, which dents and throws it up again.",
            "chosen here",
            None,
            camera=Camera((0.5, 0.4, 0.95), (0.0, 0.2, 0.0), 1.5, (480, 480)),
        ),
        Sample(
            "floating_bodies",
            "A ball of cork, a log and a cube of ice fall into water, and float as deep as they are heavy.",
            "chosen here",
            None,
            camera=Camera((0.5, 0.5, 1.12), (0.0, 0.15, 0.0), 1.42, (640, 480)),
        ),
        Sample(
            "dough_on_step",
            "A ball of dough falls on the edge of a step and slumps over it; --study cooks it at three resolutions.",
            "chosen here",
            None,
            camera=Camera((0.5, 0.5, 0.75), (-0.01, 0.12, 0.0), 1.7, (400, 320)),
        ),
        Sample(
            "stirred_batter",
            "A motor turns an impeller in batter with cocoa in a quarter of it, as fast as the batter lets it.",
            "chosen here",
            None,
            camera=Camera((0.24, 0.62, 0.42), (0.0, 0.09, 0.0), 1.5, (480, 480)),
        ),
    )
}
"""By name, in the order in which they are listed."""


def sample_named(name: str) -> Sample:
    """Return a sample.

    Raises:
        InputError: When there is none of that name.
    """
    if name not in SAMPLES:
        raise InputError(f"sample '{name}': there is none of that name; {nearest(name, SAMPLES, 'mpm-nodes sample --list')}")
    return SAMPLES[name]
