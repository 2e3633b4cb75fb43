"""Checkpoints and solved frames with sound checksums and contents that no cook wrote: a sentence, never a defect or a crash."""

from __future__ import annotations

import copy
import hashlib
import json
import shutil

import numpy as np
import pytest

from mpm_nodes import cli
from mpm_nodes.data import InputError, Particles
from mpm_nodes.farm import gather
from mpm_nodes.farm.job import load_job
from mpm_nodes.graph.declare import registry
from mpm_nodes.graph.document.document import Graph
from mpm_nodes.graph.files.archive import read_archive, write_archive
from mpm_nodes.graph.files.folder import json_bytes
from mpm_nodes.graph.revisions.records import _seal
from mpm_nodes.solver import state
from mpm_nodes.solver.restored import refuse_unsound
from mpm_nodes.solver.stores import Saved

pytest.importorskip("pxr")

QUIET = ("--events", "none")
STATE, VALUE = "checkpoints/0001.fall.state", "solved/0001.fall.particles.value"
WRONG = (None, -1, "x", [1], {}, float("nan"))


@pytest.fixture(scope="module")
def cooked(tmp_path_factory):
    """A graph, a cook of its first frame, a cook of its solves, and a job with a cook of its only wedge."""
    folder = tmp_path_factory.mktemp("cooked")
    graph = Graph(registry=registry.load(path="", entry_points=False), start=1, end=2, cell_size=0.1)
    ball = graph.add("emit_sphere", "ball", radius=0.15, material=graph.add("material_neo_hookean", "stuff"))
    graph.add("write_cache", "cache", name="cache", particles=graph.add("solve", "fall", sources=[ball]))
    file = str(graph.save(folder / "shot.json"))
    job = folder / "job"
    assert cli.main(["cook", file, "--out", str(folder / "out"), "--frames", "1", *QUIET]) == 0
    assert cli.main(["cook", file, "--out", str(folder / "solve"), "--part", "solve", *QUIET]) == 0
    assert cli.main(["farm", file, "--out", str(job)]) == 0
    assert cli.main(["cook", str(job / "wedges/000/graph.json"), "--out", str(job / "wedges/000/cache"), *QUIET]) == 0
    return folder


def sealed(path, change):
    """Write a record with a change, and the seal that fits it."""
    body = {name: value for name, value in json.loads(path.read_text()).items() if name != "seal"}
    change(body)
    path.write_bytes(json_bytes({**body, "seal": _seal(body)}))


def replaced(revision, name, header, arrays):
    """Write an archive of a revision again, and its digest into the record of its frame."""
    write_archive(revision / name, header, arrays)
    data = (revision / name).read_bytes()
    facts = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    sealed(revision / "frames/0001.commit.json", lambda body: body["files"][name].update(facts))


def put(document, place, value):
    inner = document
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value


CHANGES = {
    "a list for a header": lambda header, arrays: ([1], arrays),
    "no facts": lambda header, arrays: ({**header, "facts": None}, arrays),
    "no format": lambda header, arrays: ({name: value for name, value in header.items() if name != "format"}, arrays),
    "parts": lambda header, arrays: ({**header, "parts": "x"}, arrays),
    "time": lambda header, arrays: ({**header, "facts": {**header["facts"], "time": [1]}}, arrays),
    "no arrays": lambda header, arrays: (header, {}),
    "short": lambda header, arrays: (
        header,
        {name: array[:-1] if name.split()[-1] == "position" else array for name, array in arrays.items()},
    ),
    "other numbers": lambda header, arrays: (header, {name: array.astype(bool) for name, array in arrays.items()}),
    "no such material": lambda header, arrays: (
        header,
        {name: array + 9 if name.split()[-1] == "material" else array for name, array in arrays.items()},
    ),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("command", ["resume", "frames"])
def test_commands_say_what_they_cannot_use(cooked, tmp_path, command, change, capfd):
    """Cooks that go on, and cooks from solved frames."""
    root, name = ("out", STATE) if command == "resume" else ("solve", VALUE)
    shutil.copytree(cooked / root, tmp_path / root)
    revision = tmp_path / root / "r001"
    header, arrays = read_archive(revision / name)
    replaced(revision, name, *CHANGES[change](copy.deepcopy(header), arrays))
    words = ["--out", str(tmp_path / root), "--resume"]
    words = words if command == "resume" else ["--part", "frames", "--solved", str(tmp_path / root), "--out", str(tmp_path / "new")]
    code, said = cli.main(["cook", str(cooked / "shot.json"), *words, *QUIET]), capfd.readouterr().err
    assert code in (2, 5) and "cook" in said and "defect" not in said, (code, said)


@pytest.fixture(scope="module")
def restored(cooked, tmp_path_factory):
    """The store that a cook which goes on fills, and what it read for it."""
    folder, seen = tmp_path_factory.mktemp("sound") / "out", []
    shutil.copytree(cooked / "out", folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "refuse_unsound", lambda *given: seen.append(given))
        assert cli.main(["cook", str(cooked / "shot.json"), "--out", str(folder), "--resume", *QUIET]) == 0
    return seen[0]


def test_what_was_saved_is_sound(restored):
    """The sweep below starts from it."""
    refuse_unsound(*restored)


@pytest.mark.parametrize("part", ["facts", "fields", "tables"])
def test_every_fact_field_and_table_is_looked_at(restored, part):
    """Each of another kind, missing, of other size or type, and each table with numbers that lead elsewhere."""
    store, sound = restored
    held = getattr(sound, part)
    for name in held:
        if part == "facts":
            fine = {"limits": (None, {}), "drift": (-1,), "travelled": (-1,)}.get(name, ())
            others = [{**held, name: value} for value in (*WRONG, 10**400) if value not in fine]
        else:
            array = held[name]
            others = [{**held, name: other} for other in (array.astype(bool), array.reshape(-1)[:, None], array[:-1])]
            if name.startswith(("runs", "block_sides")):
                others.pop()  # fewer of them
            if part == "tables" and array.dtype.kind == "i" and name != "block_sides":
                others += [{**held, name: array + 1_000_000_000}, {**held, name: array - 1_000_000_000}]
        if name != "travelled" and not name.startswith(("block_body", "block_sides", "runs")):
            others.append({key: value for key, value in held.items() if key != name})
        if part == "fields" and name not in ("position", "velocity", "mass", "volume", "id", "material"):
            others.pop()
        for other in others:
            with pytest.raises(InputError, match="do not fit together"):
                refuse_unsound(store, Saved(**{"facts": sound.facts, "fields": sound.fields, "tables": sound.tables, part: other}))


@pytest.mark.parametrize("value", WRONG)
def test_particles_are_built_of_what_they_need(value):
    """Numbers that are none, and columns of another kind."""
    facts, arrays = Particles({"position": np.zeros((2, 3))}).to_arrays()
    assert len(Particles.from_arrays(facts, arrays)) == 2
    for name in ("spacing", "time"):
        if not isinstance(value, (int, float)):
            with pytest.raises(ValueError, match=name):
                Particles.from_arrays({**facts, name: value}, arrays)
    for other in (np.zeros((2, 2)), np.zeros((2, 3), bool), np.zeros(2)):
        with pytest.raises(ValueError, match="position"):
            Particles.from_arrays(facts, {"position": other})


@pytest.mark.parametrize("file", ["frames/0001.commit.json", "frames/0002.commit.json", "cook.json"])
def test_the_table_of_a_job_takes_numbers_alone(cooked, file):
    """What is not a number in a record leaves its place in the table empty."""
    job = load_job(cooked / "job")
    path = cooked / "job/wedges/000/cache/r001" / file
    before, whole = path.read_bytes(), json.loads(path.read_text())
    places = [(name,) for name in whole if name not in ("seal", "format")] + [("facts", name) for name in whole.get("facts", {})]
    try:
        for place in places:
            for value in (*WRONG, 10**400):
                sealed(path, lambda body, place=place, value=value: put(body, place, value))
                try:
                    gather.rows_of(job)
                except InputError:
                    pass
                path.write_bytes(before)
    finally:
        path.write_bytes(before)
