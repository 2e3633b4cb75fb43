"""The benchmark of C21's sizes runs on a quick one, and says particles, samples and the three parts."""

import pytest
import tension_steps


def test_substeps_are_timed_in_three_parts(capsys):
    """One row with the source's figures in brackets; every part takes time, and misses count in the paper's size alone."""
    arguments = ["soap_on_water", "--size", "quick", "--count", "1", "--set", "settings.cell_size=0.02"]
    assert tension_steps.main(arguments) == 0
    row = [cell.strip() for cell in capsys.readouterr().out.splitlines()[-1].split("|")[1:-1]]
    assert row[0] == "soap_on_water" and row[1].endswith("(4,000,000)") and row[2].endswith("(200,000)") and row[7] == "10"
    assert all(int(cell.split()[0].replace(",", "")) > 50 for cell in row[1:3])
    assert [cell.split("(")[1] for cell in row[3:6]] == ["2,166)", "32,099)", "3,205)"] and float(row[6]) > 1.0


def test_stages_belong_to_the_parts_of_the_table():
    """Fused stages count where their first one does."""
    stages = (
        "sample_surface",
        "sort",
        "rasterize",
        "compute_stress+add_stress_forces",
        "gather",
        "update_deformation+move_particles",
    )
    assert [tension_steps._part_of(stage) for stage in stages] == [0, 1, 1, 1, 2, 2]


def test_only_samples_of_the_table_are_timed(capsys):
    """Others have no row in the source's table."""
    with pytest.raises(SystemExit):
        tension_steps.main(["ellipse"])
    assert "choose from drop_impacts" in capsys.readouterr().err
