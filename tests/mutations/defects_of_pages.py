"""Planted defects of the site and of the samples' tables."""

from __future__ import annotations

from defect import Defect

DEFECTS = (
    Defect(
        "a formula prints the name of a command that is not known",
        "docs/mathml.py",
        'if "\\\\" in elements:',
        "if not elements:",
        "tests/docs/test_formulas.py::test_an_unknown_command_is_refused",
    ),
    Defect(
        "bars around a value stand apart from it",
        "docs/mathml.py",
        '\'<mo stretchy="false" lspace="0" rspace="0">|</mo>\'',
        "'<mo stretchy=\"false\">|</mo>'",
        "tests/docs/test_formulas.py::test_bars_and_functions_stand_as_in_print",
    ),
    Defect(
        "the helper that compiles is turned off by a name that no page has",
        "mpm_nodes/solver/cold_start.py",
        'SWITCH = "MPM_NODES_COMPILE_HELPER"',
        'SWITCH = "MPM_NODES_HELPER"',
        "tests/docs/test_pipeline_page.py::test_every_variable_of_ours_is_told_and_there_are_no_others",
    ),
    Defect(
        "a table is written over that of the first sample",
        "tests/reproduction/write_tables.py",
        'head, title, rest = text.partition(f"\\n## {sample}\\n")',
        'head, title, rest = text.partition("\\n## ")',
        "tests/samples/test_figures.py::test_a_table_is_written_into_its_section",
    ),
)
