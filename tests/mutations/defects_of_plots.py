"""Planted defects of curves: what a cache's particles tell, and what is drawn over a measured curve."""

from __future__ import annotations

from defect import Defect

_CACHES = "tests/plots/test_plot_caches.py"
DEFECTS = (
    Defect(
        "frames that a cache lacks make an empty plot",
        "mpm_nodes/plots/cache_curves.py",
        "if held and not records:",
        "if not held:",
        f"{_CACHES}::test_frames_that_are_not_there_are_told",
    ),
    Defect(
        "energy of gravity has the wrong sign",
        "mpm_nodes/plots/cache_curves.py",
        'energy.line("of gravity").add(frame, -float(mass @ fallen))',
        'energy.line("of gravity").add(frame, float(mass @ fallen))',
        f"{_CACHES}::test_a_free_fall_has_the_curves_of_mechanics",
    ),
    Defect(
        "a picture follows the settings of the working folder",
        "mpm_nodes/plots/pictures.py",
        "with matplotlib.rc_context({**matplotlib.rcParamsDefault, **STYLE}):",
        "with matplotlib.rc_context():",
        f"{_CACHES}::test_a_picture_hangs_on_no_settings",
    ),
    Defect(
        "what misses is drawn as what holds",
        "mpm_nodes/plots/check_pictures.py",
        "colour = HELD if record.passed else MISSED",
        "colour = HELD",
        "tests/plots/test_plot_checks.py::test_a_picture_tells_what_misses",
    ),
)
