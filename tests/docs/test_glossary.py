"""The glossary: a file is found by the word that the field has for it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import mpm_nodes

PACKAGE = Path(mpm_nodes.__file__).parent
PAGE = (PACKAGE.parent / "docs" / "glossary.md").read_text()
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| ")][2:]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_the_words_of_the_field_lead_to_the_file(row):
    """One of the words of a row stands in every file that it names; of a folder, in one of its files."""
    words, _, places = row
    assert len(row) == 3 and re.findall(r"`([^`]+)`", places)
    for place in re.findall(r"`([^`]+)`", places):
        path = PACKAGE / place
        files = sorted(path.glob("*.py")) if path.is_dir() else [path]
        texts = [" ".join(file.read_text().lower().split()) for file in files]
        assert any(word.lower() in text for word in words.split(", ") for text in texts), place
