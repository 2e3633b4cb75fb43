"""Matter that lies inside colliders as a solve begins is said, before the cook and in its first frame, and may be taken out."""

from __future__ import annotations

import numpy as np
import pytest

from mpm_nodes import Graph
from mpm_nodes.data import Collider, CollisionRule, FrameContext, GraphSettings, Material, MpmNodesError
from mpm_nodes.graph.cook.executor import execute
from mpm_nodes.graph.plan import preflight
from mpm_nodes.graph.plan.plan import plan_graph
from mpm_nodes.kernels.level_sets.level_set import LEVEL_SET, PosedLevelSets
from mpm_nodes.kernels.level_sets.mesh_level_set import mesh_level_set
from mpm_nodes.kernels.level_sets.mesh_repair import triangulate
from mpm_nodes.nodes.collide import collide_box, collide_sphere
from mpm_nodes.nodes.collider_motion import box_mesh
from mpm_nodes.nodes.emit import emit_box
from mpm_nodes.nodes.start_inside import StartInside, begun

CELL = 0.05
SETTINGS = GraphSettings(cell_size=CELL, end=1)
RUBBER = Material("neo_hookean", {}, 1000.0, "rubber")
NAMES = {"sources": ("block",), "colliders": ("wall",)}

COLLIDERS = {
    "collide_box": ({"size": (1.0, 1.0, 1.0), "centre": (0.0, -0.5, 0.0)}, 0.0),
    "collide_plane": ({"centre": (0.0, 0.0, 0.0)}, 0.0),
    "collide_sphere": ({"radius": 0.3, "centre": (0.0, -0.3, 0.0)}, None),
    "collide_capsule": ({"radius": 0.3, "length": 0.4, "centre": (0.0, -0.3, 0.0), "rotation": (0.0, 0.0, 90.0)}, None),
}


def scene(kind="collide_box", height=0.1, **knobs) -> Graph:
    """Return a graph: a block of 0.2 m whose middle is that high above a surface, and the solve's knobs."""
    graph = Graph(cell_size=CELL, start=1, end=1)
    matter = graph.add("material_library", "matter", name="jelly")
    block = graph.add("emit_box", "block", material=matter, size=(0.2, 0.2, 0.2), centre=(0.0, height, 0.0))
    wall = graph.add(kind, "wall", **COLLIDERS[kind][0])
    graph.add("solve", "fall", sources=[block], colliders=[wall], **knobs)
    return graph


def said(graph: Graph) -> tuple[list[str], list[str]]:
    """Return what is said before the cook and in its first frame."""
    before = [text for _, text in preflight.warnings_of(preflight.estimate(plan_graph(graph), 1))]
    first = [text for text in execute(graph).warnings if not text.startswith("fall: ")]  # a cook repeats what is said before it
    return [text for text in before if "start inside" in text], [text for text in first if "start inside" in text]


@pytest.mark.parametrize("kind", COLLIDERS)
def test_the_share_is_said_before_the_cook_and_in_its_first_frame(kind):
    """A block that is a quarter under a flat surface: 25 %; in round bodies both count alike; above, nothing is said."""
    before, cooked = said(scene(kind, height=0.05))
    assert "of the particles of 'block' start inside collider 'wall'" in before[0]
    assert len(before) == len(cooked) == 1
    shares = [float(text.split(" %")[0].split()[-1]) for text in (before[0], cooked[0])]
    assert abs(shares[0] - shares[1]) <= 2.0
    if COLLIDERS[kind][1] is not None:
        assert shares == [25.0, 25.0]
    assert said(scene(kind, height=0.11)) == ([], [])


def cube() -> Collider:
    """Return a cube of a meter below y = 0, as a mesh."""
    mesh = box_mesh((1.0, 1.0, 1.0))
    level_set = mesh_level_set(mesh.points - [0.0, 0.5, 0.0], triangulate(mesh.counts, mesh.indices)[0], 0.025)
    return Collider("cube", CollisionRule.SEPARATE, 0.0, PosedLevelSets(LEVEL_SET, (), level_sets=(level_set,)), None)


@pytest.mark.parametrize("solid", [cube, lambda: collide_box(FrameContext(1), centre=(0.0, -0.5, 0.0))])
@pytest.mark.parametrize("choice", StartInside)
def test_what_lies_inside_is_kept_pushed_out_or_cut_away(solid, choice):
    """Kept as it is to the bit; pushed up to the surface, all of it; or gone, a quarter of its mass. It is said in each case."""
    block, texts = emit_box(SETTINGS, RUBBER, size=(0.2, 0.2, 0.2), centre=(0.0, 0.05, 0.0)), []
    (made,) = begun([block], NAMES, [solid()], CELL, choice, texts.append)
    assert len(texts) == 1 and texts[0].startswith("25 % of the particles of 'block' start inside collider 'wall', up to 0.0375 m")
    if choice is StartInside.KEEP:
        assert made is block
    elif choice is StartInside.PUSH_OUT:
        assert len(made) == len(block) and made["position"][:, 1].min() > 0.0
        np.testing.assert_array_equal(made["position"][:, [0, 2]], block["position"][:, [0, 2]])
    else:
        assert made["mass"].sum() == pytest.approx(0.75 * block["mass"].sum()) and made["position"][:, 1].min() > 0.0


def test_what_a_collider_clamps_and_what_touches_is_left():
    """A clamp holds what lies in it; matter that stands on a body lies before it."""
    block, texts = emit_box(SETTINGS, RUBBER, size=(0.2, 0.2, 0.2), centre=(0.0, 0.1, 0.0)), []
    held = collide_sphere(FrameContext(1), centre=(0.0, 0.1, 0.0), rule=CollisionRule.STICKY, clamp=True)
    floor = collide_box(FrameContext(1), centre=(0.0, -0.5, 0.0))
    (made,) = begun([block], {}, [held, floor], CELL, StartInside.CUT_AWAY, texts.append)
    assert made is block and not texts


def test_a_choice_is_not_warned_of_before_the_cook_and_takes_effect():
    """Cut away, the first frame has three quarters of the particles."""
    graph = scene(height=0.05, start_inside="cut_away")
    found = execute(graph).outputs["fall"]["particles"]
    assert len(found) == pytest.approx(0.75 * len(execute(scene(height=0.05)).outputs["fall"]["particles"]))
    assert said(graph)[0] == []
    with pytest.raises(MpmNodesError, match="all particles start inside colliders"):
        execute(scene(height=-0.5, start_inside="cut_away"))
