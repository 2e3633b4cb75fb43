"""The benchmark of S14's sizes runs on a quick one, and says particles, seconds and stages."""

import paper_sizes
import pytest


def test_a_part_of_a_coarse_frame_is_timed_by_stage(capsys):
    """One row with the source's 18.5 minutes in seconds, shares of stages that add up; misses count in the paper's size alone."""
    arguments = ["letters", "--size", "quick", "--parts", "10", "--count", "1", "--set", "settings.cell_size=0.06"]
    assert paper_sizes.main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    row = [cell.strip() for cell in lines[-1].split("|")[1:-1]]
    assert row[0] == "letters" and int(row[1].replace(",", "")) > 50 and row[4] == "1110" and row[6] == "15"
    assert float(row[5]) == pytest.approx(1110.0 / float(row[3]), rel=0.6)  # seconds are printed with one digit
    shares = {line.split("%")[1].strip(): float(line.split("%")[0]) for line in lines if line.startswith("  ")}
    assert "project_velocity" in " ".join(shares) and sum(shares.values()) == pytest.approx(100.0, abs=5.0)


def test_what_solves_is_kept_and_the_rest_left_out():
    """No cache, no surface: only what the solve of lava hangs on."""
    graph = paper_sizes.graph_of(paper_sizes.sample_named("lava"), "paper")
    kept = paper_sizes.upstream(graph, "run")
    assert {"melt", "vent", "hot", "warm", "run"} <= kept and not kept & {"surface", "glow", "cache", "flow"}


def test_only_samples_of_the_table_are_timed(capsys):
    """Others have no row in the source's table."""
    with pytest.raises(SystemExit):
        paper_sizes.main(["wax"])
    assert "choose from letters" in capsys.readouterr().err
