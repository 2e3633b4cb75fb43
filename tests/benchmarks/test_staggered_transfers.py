"""The benchmark of staggered transfers runs and compares like with like."""

import pytest
import staggered_transfers


@pytest.mark.slow
def test_a_small_run_prints_every_transfer(capsys):
    """All transfers are timed beside the step, and their sums stand below."""
    assert staggered_transfers.main(["--particles", "20000", "--repeats", "3"]) in (0, 1)
    lines = capsys.readouterr().out.splitlines()
    ratios = {
        line.split("|")[1].strip(): float(line.split("|")[3])
        for line in lines
        if line.count("|") == 4 and "---" not in line and "ms" not in line
    }
    calls = ("rasterize_heat", "rasterize_faces", "gather_heat", "gather_faces")
    assert ratios["step"] == 1.0 and all(ratios[name] > 0.0 for name in calls)
    assert ratios["faces and cells, there and back"] == pytest.approx(sum(ratios[name] for name in calls), abs=0.03)
