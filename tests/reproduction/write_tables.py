"""Write the tables in samples/figures from what `python -m tests.reproduction` left beside its contact sheets.

python -m tests.reproduction.write_tables out/NAME ...
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from mpm_nodes.packaged_samples import samples_folder

BALANCES = frozenset(
    {
        "particles at the start",
        "substeps a frame",
        "seconds a frame, solve",
        "volume inside the surface, off the particles' own at most [%]",
        "sum of the area vectors of the surface over its area, at most in a substep",
        "mass at the start [kg]",
        "mass at the end [kg]",
        "mass that streams bring [kg]",
        "mass that is missing, over all",
        "change of the mass",
        "momentum at the end [kg m/s]",
        "enthalpy at the start [J]",
        "enthalpy at the end [J]",
        "enthalpy that streams bring [J]",
        "heat from bodies, air and sources [J]",
        "enthalpy that is missing, over that heat or all latent heat",
    }
)
"""Figures of every cook that README.md names once; tables have them only where they miss."""
HEAD = "| figure | measured | must show | holds |\n| --- | --- | --- | --- |\n"


def balanced(figure: dict) -> bool:
    """Return whether a figure, as figures.json holds it, is one of the balances and does not miss: tables leave it out."""
    return figure["name"] in BALANCES and figure["verdict"] in ("", "ok")


def table_of(record: dict) -> str:
    """Return the figures of a cook as the table of its page."""
    told = [each for each in record["figures"] if not balanced(each)]
    rows = [f"| {each['name']} | {each['printed']} | {each['expected'] or '-'} | {each['verdict']} |" for each in told]
    return HEAD + "\n".join(rows) + "\n"


def with_table(text: str, sample: str, table: str) -> str:
    """Return the page with that table in the sample's section, in place of the one there or at its end."""
    head, title, rest = text.partition(f"\n## {sample}\n")
    end = re.search(r"^#{1,2} ", rest, re.MULTILINE)
    section, after = (rest[: end.start()], rest[end.start() :]) if end else (rest, "")
    found = re.search(r"(^\|.*\n)+", section, re.MULTILINE)
    if found:
        section = section[: found.start()] + table + section[found.end() :]
    else:
        section = section.rstrip("\n") + "\n\n" + table + "\n"
    return head + title + section + after


def page_of(sample: str) -> Path:
    """Return the page with the section of a sample.

    Raises:
        SystemExit: None has it.
    """
    for page in sorted((samples_folder() / "figures").glob("*.md")):
        if f"\n## {sample}\n" in page.read_text():
            return page
    raise SystemExit(f"samples/figures has no page with a section '## {sample}'; write it first")


def main(folders: list[str]) -> None:
    """Take the newest figures in each output folder."""
    for folder in folders:
        files = sorted(Path(folder).glob("r*/preview/figures.json"))
        if not files:
            raise SystemExit(f"{folder}: no figures of `python -m tests.reproduction` in it")
        record = json.loads(files[-1].read_text())
        if record["size"] != "quick" or record["overrides"]:
            raise SystemExit(f"{files[-1]}: of size {record['size']} with {record['overrides']}; tables hold the quick size")
        page = page_of(record["sample"])
        page.write_text(with_table(page.read_text(), record["sample"], table_of(record)))


if __name__ == "__main__":
    main(sys.argv[1:])
