"""The scripts that run inside other environments: they stand alone, and all start from the same arrays."""

import ast
from pathlib import Path

import falling_cube
import numpy as np
import pytest
from benchmark_folder import FOLDER
from surface_of_points import enclosed_volume

SCRIPTS = sorted((FOLDER / "peers").glob("*.py"))
OURS = {"mpm_nodes_cube", "mpm_nodes_surface", "cold_start"}
AT_HOME = {
    "numpy",
    "taichi",
    "warp",
    "pysplashsurf",
    "falling_cube",
    "surface_of_points",
    "__future__",
    "argparse",
    "collections",
    "dataclasses",
    "importlib",
    "json",
    "os",
    "pathlib",
    "time",
    "typing",
}


@pytest.mark.parametrize("script", [path for path in SCRIPTS if path.stem not in OURS], ids=lambda path: path.stem)
def test_peers_scripts_stand_alone(script: Path):
    """They are Python, and import their own environment's packages and their shared files only, never mpm_nodes."""
    imported = set()
    for item in ast.walk(ast.parse(script.read_text(), str(script))):
        if isinstance(item, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in item.names}
        elif isinstance(item, ast.ImportFrom):
            imported.add((item.module or "").split(".")[0])
    assert imported <= AT_HOME


@pytest.mark.parametrize("solver", ["taichi_cube", "warp_cube", "mpm_nodes_cube"])
def test_every_solver_takes_the_scene_from_one_place(solver):
    """Particles come from `cube.particles()`, and no script states a number of the scene itself."""
    tree = ast.parse((FOLDER / "peers" / f"{solver}.py").read_text())
    calls = [ast.unparse(item.func) for item in ast.walk(tree) if isinstance(item, ast.Call)]
    numbers = {item.value for item in ast.walk(tree) if isinstance(item, ast.Constant) and isinstance(item.value, float)}
    assert calls.count("cube.particles") == 1
    assert numbers.isdisjoint(
        {
            falling_cube.CELL,
            falling_cube.SPACING,
            falling_cube.YOUNGS_MODULUS,
            falling_cube.DENSITY,
            falling_cube.TIME_STEP,
            falling_cube.GRAVITY,
            falling_cube.POISSON_RATIO,
        }
    )


def test_scene_is_the_same_every_time():
    """Two processes that ask for a cube get the same bits, in lattice order, eight particles a cell."""
    cube = falling_cube.Cube.of(4000)
    first, second = cube.particles(), falling_cube.Cube(cube.side).particles()
    for a, b in zip(first, second, strict=True):
        assert a.dtype == np.float32 and a.shape == (cube.count, 3) and a.flags.c_contiguous
        assert a.tobytes() == b.tobytes()
    cell = np.floor(first[0] / falling_cube.CELL).astype(int)
    inner = cell[(cell > cell.min(axis=0)).all(axis=1) & (cell < cell.max(axis=0)).all(axis=1)]
    assert (np.unique(inner, axis=0, return_counts=True)[1] == 8).all()


@pytest.mark.parametrize("particles", [512, 20_000, 1_000_000])
def test_cube_stays_clear_of_the_grid_of_the_peers(particles):
    """In 200 steps, more than a run does, the fastest particle does not come within two cells of the grid's edge."""
    cube = falling_cube.Cube.of(particles)
    position, velocity = cube.particles()
    fall = 0.5 * abs(falling_cube.GRAVITY) * (200 * falling_cube.TIME_STEP) ** 2
    reach = 200 * falling_cube.TIME_STEP * np.abs(velocity).max() + fall + 2.0 * falling_cube.CELL
    assert position.min() > reach
    assert position.max() < cube.grid_nodes * falling_cube.CELL - reach
    assert particles != 1_000_000 or (cube.count, cube.grid_nodes) == (1_000_000, 128)


def test_our_solver_starts_from_the_same_arrays(tmp_path):
    """What our solver holds before its first step is what the peers are filled with."""
    from mpm_nodes_cube import start

    cube = falling_cube.Cube.of(1000)
    held_position, held_velocity, held_deformation = start(cube, "as wired", 1, tmp_path).state()
    position, velocity = cube.particles()
    np.testing.assert_allclose(held_position, position, rtol=0.0, atol=2.0**-27 * falling_cube.CELL)
    assert np.array_equal(held_velocity, velocity)
    assert np.array_equal(held_deformation, np.broadcast_to(np.eye(3), (cube.count, 3, 3)))


def test_times_are_taken_over_whole_intervals():
    """Steps are rounded up to whole intervals, warm-up and counted ones alike, so that a sort is never left out."""
    done = []
    running = falling_cube.Running(lambda: done.append("step"), lambda: done.append("finish"), tuple, "1", interval=32)
    facts = falling_cube.timed(running, 1, 33)
    assert facts["steps"] == 64 and done.count("step") == 96
    assert [place for place, what in enumerate(done) if what == "finish"] == [32, 97]
    assert facts["step_seconds"] > 0.0


def test_volume_of_a_tetrahedron():
    """Volume inside outward triangles: 1/6 for the unit tetrahedron wherever it lies, negative when turned inside out."""
    points = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]) + [3.0, -2.0, 5.0]
    corners = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    assert enclosed_volume(points, corners) == pytest.approx(1.0 / 6.0)
    assert enclosed_volume(points, corners[:, ::-1]) == pytest.approx(-1.0 / 6.0)
