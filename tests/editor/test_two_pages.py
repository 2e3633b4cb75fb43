"""Two pages of a real browser on one graph do not lose each other's edits."""

from __future__ import annotations

from editor_page import driven


def test_neither_page_loses_what_the_other_has_done(page, project):
    """A page without changes reads the file again; one with changes is asked before anything is overwritten."""
    found = driven("two_pages.mjs", page.server.url, project)
    assert "error" not in found, found["error"]
    assert found["faults"] == [] and found["outside"] == []
    assert found["read"] == "0.25"
    assert found["kept"] == [0.22, "0.3"]
    assert found["written"] == 0.3 and found["told"] == "0.3"
