"""The table of targets, played with figures that are made up: verdicts, exit codes, and that no target is left out."""

import json
import os

import pytest
import to_reach


@pytest.fixture
def played(monkeypatch):
    """Replace what measures; return what was asked for and figures to change."""
    asked, faults = [], {"rate": 70e6, "ratio": 8.0, "seconds": 5.0, "share": 0.9}

    def figures(environment, command):
        asked.append((environment.get("NUMBA_CPU_NAME"), [str(part) for part in command]))
        text = " ".join(asked[-1][1])
        record = {"particle_steps_per_second": faults["rate"], "stage_seconds": {"avoid_a_void": 0.001}, "substeps": 64}
        record |= {"total_seconds": 6.4, "bytes_per_particle": 320.0}
        if "against_peers" in text:
            return [{"ratio": faults["ratio"]}, {"ratio": 20.0}, {"ratio": None}]
        if "cores.py" in text:
            share = {"share": faults["share"]}
            return [
                {"scene": "compact", "serial_share": 0.01, "bytes_moved": 400.0, "cores": dict.fromkeys(("8", "16", "64"), share)}
            ]
        if "caches.py" in text:
            whats = ("all caches against nothing written", "all caches against solve alone", "surface of the ball")
            return [{"what": what, "figure": 1.9} for what in whats]
        return [{**record, "law": law} for law in to_reach.LAWS] if "--law" in text else [record]

    monkeypatch.setattr(to_reach, "_figures", figures)
    monkeypatch.setattr(to_reach, "_has_avx512", lambda: True)
    monkeypatch.setattr(to_reach, "started", lambda preset, cache, threads: 0.1 * faults["seconds"])
    monkeypatch.setattr(to_reach, "counts", lambda particles: iter(()))
    monkeypatch.setitem(to_reach.PARTS, "counts", lambda particles: iter(()))
    return asked, faults


def test_every_bar_is_measured_and_met(played, tmp_path, capsys):
    """Both kinds of kernels, every law, preset and cache; AVX2 is asked for by the processor's name."""
    asked, _ = played
    assert to_reach.main(["--json", str(tmp_path / "bars.json")]) == 0
    bars = json.loads((tmp_path / "bars.json").read_text())
    assert {name for name, _ in asked} == {None, "znver3"}
    texts = " | ".join(bar["text"] for bar in bars)
    for words in ("AVX-512: neo-Hookean", "AVX2: neo-Hookean", "cubic FLIP", "snow beside", "smore_exterior", "foam: resampling"):
        assert words in texts
    for words in ("foam: memory", "beside the best peer", "64 cores", "warm start", "all caches", "surface of the ball"):
        assert words in texts
    for preset in to_reach.PRESETS:
        assert f"cold start, {preset}, free cores: 1" in texts and f"cold start, {preset}, free cores: 2" in texts
    assert {bar["verdict"] for bar in bars} == {"met", "listed"}
    assert "MISSED" not in capsys.readouterr().out


@pytest.mark.parametrize(
    "part, fault, figure",
    [("rates", "rate", 10e6), ("peers", "ratio", 4.9), ("cold", "seconds", 200.0), ("cores", "share", 0.59)],
)
def test_what_is_missed_is_said(part, fault, figure, played, capsys):
    """One figure on the wrong side of its target is enough for exit code 1."""
    played[1][fault] = figure
    assert to_reach.main(["--only", part]) == 1
    assert "MISSED" in capsys.readouterr().out


def test_what_could_not_be_measured_is_no_success(played, capsys, monkeypatch):
    """No peer agrees: there is no ratio, and the target is not met."""
    monkeypatch.setattr(to_reach, "_figures", lambda environment, command: [{"ratio": None}])
    assert to_reach.main(["--only", "peers"]) == 1
    assert "NOT MEASURED" in capsys.readouterr().out


def test_every_preset_has_a_cold_start():
    """A preset that is added is measured too."""
    from mpm_nodes.graph.declare import registry

    assert set(to_reach.PRESETS) == set(registry.default().presets)


def test_a_start_is_timed_to_the_third_substep(monkeypatch, tmp_path):
    """The process runs on as many cores as are said, with the cache that it is given."""
    (tmp_path / "cold_start.py").write_text(
        "import os, sys\nseen = open(os.environ['MPM_NODES_CACHE'] + '/seen', 'w')\n"
        "seen.write(f'{len(os.sched_getaffinity(0))} {sys.argv[1]}')\nseen.close()\n"
        "print('third substep')\n"
    )
    monkeypatch.setattr(to_reach, "PEERS", tmp_path)
    assert 0.0 < to_reach.started("explicit_apic", str(tmp_path), 1) < 60.0
    assert (tmp_path / "seen").read_text() == "1 explicit_apic"
    (tmp_path / "cold_start.py").write_text("raise SystemExit(3)\n")
    with pytest.raises(SystemExit, match="ended with 3"):
        to_reach.started("explicit_apic", str(tmp_path), 1)
    assert len(os.sched_getaffinity(0)) >= 1
