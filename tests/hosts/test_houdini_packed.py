"""Packed assets: byte for byte as the format has them, the same sections as the expanded ones, and damage is named."""

from __future__ import annotations

import pytest

from mpm_nodes.data import InputError
from mpm_nodes.hosts.houdini import assets, package, packed
from mpm_nodes.hosts.houdini.sections import encoded
from tests.houdini_assets import reading
from tests.houdini_assets.check import check_folder

TIME = packed.MODIFIED.to_bytes(4, "big")


def test_a_container_is_a_table_and_the_bytes():
    """Big-endian lengths; offsets count from behind the table."""
    table = b"INDX" + bytes(8) + b"\0\0\0\2" + b"\0\0\0\1a" + b"\0\0\0\0" + b"\0\0\0\3" + TIME
    table += b"\0\0\0\2bc" + b"\0\0\0\3" + b"\0\0\0\0" + b"\0\0\0\7"
    raw = packed.container({"a": b"xyz", "bc": b""}, {"bc": 7})
    assert raw == table + b"xyz"
    assert reading.read(raw) == ({"a": b"xyz", "bc": b""}, {"a": packed.MODIFIED, "bc": 7})


def test_options_carry_their_types():
    """A flag is type 1, text 3, whole numbers 13, as public packed assets have them."""
    raw = packed.extra_file_options({"S/Is": True, "S/Text": "ab", "S/At": [1, 300]})
    flag = b"\0\4S/Is" + b"\0\0\0\1" + b"\0\0\0\1"
    text = b"\0\6S/Text" + b"\0\0\0\3" + b"\0\2ab"
    numbers = b"\0\4S/At" + b"\0\0\0\x0d" + bytes(7) + b"\2" + bytes(7) + b"\1" + bytes(6) + b"\1\x2c"
    assert raw == b"\0\0\0\3" + flag + text + numbers


def test_the_index_names_a_python_sop():
    """Eleven texts, least and greatest input, a time, and three flags: no subnet, not empty, Python."""
    record = packed.IndexRecord("a::b::1.0", "B", "a::Sop/b::1.0", "icon", (1, 3))
    raw = packed.index_section(record)
    assert raw[:8] == b"\0\0\0\1\0\0\0\4" and raw[8:21] == b"\0\0\0\x09a::b::1.0"
    assert raw[-19:] == bytes(4) + b"\0\0\0\1\0\0\0\3" + TIME + b"\0\0\1"


def test_packed_and_expanded_say_the_same(spec):
    """Every packed asset expands to exactly the files of its expanded twin."""
    for asset in assets.assets_of(spec):
        wanted = {path: text.encode() for path, text in asset.expanded().items()}
        assert reading.expand(asset.packed(), asset.id) == wanted, asset.id


def test_packed_assets_are_checked_too(spec, tmp_path):
    """Ours are without a finding; a section that breaks a rule is named with its packed file."""
    libraries = package.write(spec, tmp_path, "packed")
    found, findings = check_folder(tmp_path)
    assert found == libraries and findings == []
    broken = tmp_path / "broken.hda"
    asset = assets.assets_of(spec)[0]
    broken.write_bytes(asset.packed().replace(b"CheckExternal := 1;", b"CheckExternal := 7;"))
    _, findings = check_folder(broken)
    assert [str(each).split(": ")[0] for each in findings] == [f"{broken}/{encoded(asset.type_path)}/TypePropertiesOptions"]


@pytest.mark.parametrize("length", [0, 3, 9, 40, 400, -1])
def test_a_file_that_was_cut_off_is_refused(spec, length):
    """At any length: a sentence with the file, never a traceback of the parser."""
    raw = assets.assets_of(spec)[0].packed()
    with pytest.raises(InputError, match=r"shot\.hda: (is cut off|begins with)"):
        reading.expand(raw[:length], "shot.hda")
