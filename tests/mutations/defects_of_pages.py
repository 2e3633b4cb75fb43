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
        "a table is written over that of the first sample",
        "samples/write_tables.py",
        'head, title, rest = text.partition(f"\\n## {sample}\\n")',
        'head, title, rest = text.partition("\\n## ")',
        "tests/samples/test_figures.py::test_a_table_is_written_into_its_section",
    ),
)
