"""Defects of Blender's extension: one line each, and the test that tells it."""

from __future__ import annotations

from defect import Defect

DEFECTS = (
    Defect(
        "a quick drop begins where the object is",
        "mpm_nodes/hosts/blender_addon/quick_ways.py",
        'given["translation"] = [0.0, _short(way.height), 0.0]',
        'given["translation"] = [0.0, 0.0, _short(way.height)]',
        "tests/hosts/test_blender_quick_ways.py::test_an_object_is_filled_poured_dropped_or_thrown",
    ),
    Defect(
        "quick matter that is added brings a second ground",
        "mpm_nodes/hosts/blender_addon/quick.py",
        'first_of(tree, "collide_plane") is not None)',
        'first_of(tree, "collide_plane") is None)',
        "tests/hosts/test_blender_quick_ways.py::test_matter_of_two_quick_calls_meets_in_one_graph",
    ),
    Defect(
        "help of a renamed knob lacks the field's term",
        "mpm_nodes/hosts/spec.py",
        'record["doc"] = f"{term}. ',
        'record["doc"] = f"',
        "tests/hosts/test_spec.py::test_labels_are_words_of_artists_and_help_keeps_the_terms",
    ),
    Defect(
        "renders read the coarse cook",
        "mpm_nodes/hosts/blender_addon/resolutions.py",
        "own.show_viewport, own.show_render = False, tree.render_high",
        "own.show_viewport, own.show_render = False, False",
        "tests/hosts/test_blender_resolutions.py::test_renders_read_the_fine_cook_and_the_viewport_the_coarse_one",
    ),
    Defect(
        "what waits in Blender's queue does not wait",
        "mpm_nodes/hosts/blender_addon/cook.py",
        "while WAITING and not JOBS and not busy():",
        "while WAITING and not busy():",
        "tests/hosts/test_blender_caches.py::test_cooks_wait_for_one_another",
    ),
    Defect(
        "a published cook takes its states along",
        "mpm_nodes/hosts/blender_addon/revisions.py",
        'shutil.ignore_patterns("checkpoints", ',
        "shutil.ignore_patterns(",
        "tests/hosts/test_blender_caches.py::test_a_note_and_a_published_version_stay_when_the_cook_goes",
    ),
    Defect(
        "what is painted stays with the object that an emitter no longer stands for",
        "mpm_nodes/hosts/blender_addon/nodes.py",
        "if before is not None and node.scene_object not in (None, before):",
        "if before is not None and node.scene_object is None:",
        "tests/hosts/test_blender_painting.py::test_what_is_painted_follows_the_object_that_takes_the_place",
    ),
    Defect(
        "a collider that is no longer painted sticks everywhere",
        "mpm_nodes/hosts/blender_addon/painting.py",
        "node.k_adhesion = 0.0",
        "node.k_adhesion = STICKY",
        "tests/hosts/test_blender_painting.py::test_what_is_painted_follows_the_object_that_takes_the_place",
    ),
)
