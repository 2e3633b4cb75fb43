"""A value made of arrays in one file: the bytes come back, damage is noticed, and how it was written does not matter."""

from __future__ import annotations

import errno
import hashlib
import os

import numpy as np
import pytest

from mpm_nodes.data import InputError
from mpm_nodes.graph.files.archive import read_archive, write_archive


def test_archive_keeps_values_and_refuses_damage(tmp_path):
    """Every dtype and shape comes back bit for bit; a flipped or missing byte anywhere is noticed."""
    path = tmp_path / "a.state"
    arrays = {
        "f": np.linspace(0, 1, 7, dtype=np.float32), "d": np.array([[np.nan, np.inf], [-0.0, 1e-310]]),
        "none": np.zeros((0, 3)),
        "b": np.array([True, False]), "scalar": np.array(7, np.int64), "i": np.arange(6, dtype=">i4").reshape(2, 3),
        "strided": np.arange(10, dtype=np.int16)[::3],
    }  # fmt: skip
    write_archive(path, {"x": [1, None, "é"]}, arrays)
    facts, back = read_archive(path)
    assert facts == {"x": [1, None, "é"]}
    assert list(back) == list(arrays)
    for name, array in arrays.items():
        assert back[name].shape == array.shape and back[name].flags.writeable
        assert back[name].tobytes() == np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
    whole = path.read_bytes()
    for position in range(0, len(whole), 37):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        with pytest.raises(InputError):
            read_archive(path)
        path.write_bytes(whole[:position])
        with pytest.raises(InputError):
            read_archive(path)
    with pytest.raises(TypeError, match="object"):
        write_archive(path, {}, {"o": np.array([{}])})


@pytest.mark.parametrize("count", [0, 1, 4096 - 21, 1 << 18, (1 << 19) + 3])
@pytest.mark.parametrize("direct", ["known", "refused when opened", "refused when written", "unknown"])
def test_an_archive_past_the_cache_has_the_same_bytes(tmp_path, monkeypatch, count, direct):
    """Whether or not the file system takes writes past its cache, and however rows lie in memory; the digest is the file's."""
    rows = np.random.default_rng(1).random((3, count + 5)).astype(np.float32)[:, :count]
    arrays = {"rows": rows, "columns": rows.T, "id": np.arange(count)}
    write_archive(tmp_path / "plain", {"count": count}, {name: array.copy() for name, array in arrays.items()})
    before_open, before_write, flag = os.open, os.write, getattr(os, "O_DIRECT", 1 << 30)
    refusals = []

    def refuse(really):
        if really:
            refusals.append(direct)
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    def open_file(path, flags, mode=0o777):
        refuse(direct == "refused when opened" and flags & flag)
        return before_open(path, flags, mode)

    def write(handle, data):
        import fcntl

        refuse(direct == "refused when written" and fcntl.fcntl(handle, fcntl.F_GETFL) & flag)
        return before_write(handle, data)

    if direct == "unknown":
        monkeypatch.delattr(os, "O_DIRECT", raising=False)
    elif not hasattr(os, "O_DIRECT"):
        pytest.skip("this system always writes through its cache")
    monkeypatch.setattr(os, "open", open_file)
    monkeypatch.setattr(os, "write", write)
    digest = write_archive(tmp_path / "direct", {"count": count}, arrays, cached=False)
    monkeypatch.undo()
    if direct == "refused when opened" or (direct == "refused when written" and count > 1 << 18):
        assert refusals
    assert (tmp_path / "direct").read_bytes() == (tmp_path / "plain").read_bytes()
    assert digest == hashlib.sha256((tmp_path / "direct").read_bytes()).hexdigest()
