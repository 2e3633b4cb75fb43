"""The registry finds nodes in the package, in user folders and nowhere else; broken files are one line each."""

from __future__ import annotations

import subprocess
import sys

import outer_nodes
import pytest

from mpm_nodes.graph.declare import registry as registries
from mpm_nodes.graph.declare.registry import Registry, RegistryError

NODE = '''
from mpm_nodes.data import Mesh
from mpm_nodes.graph.declare import node


@node(category="Mine", label="Mine")
def {name}(mesh: Mesh, *, amount: int = 1) -> Mesh:
    """Do my thing.

    Args:
        mesh: A mesh.
        amount: How much.
    """
    return mesh
'''


def user_registry(folder) -> Registry:
    return registries.load(str(folder), builtin=False, entry_points=False)


def test_a_file_in_a_user_folder_is_a_node(tmp_path):
    """Dropping a file into a folder on MPM_NODES_PATH is all it takes; files that start with _ are left alone."""
    (tmp_path / "mine.py").write_text(NODE.format(name="my_node"))
    (tmp_path / "_draft.py").write_text("this is not Python")
    registry = user_registry(tmp_path)
    assert list(registry.nodes()) == ["my_node"]
    assert not registry.get("my_node").is_builtin and len(registry.get("my_node").code_digest) == 64


def test_the_code_digest_follows_the_file(tmp_path):
    """Editing a user's node file changes the code digest that enters lineage keys."""
    (tmp_path / "mine.py").write_text(NODE.format(name="my_node"))
    before = user_registry(tmp_path).get("my_node").code_digest
    (tmp_path / "mine.py").write_text(NODE.format(name="my_node").replace("return mesh", "return mesh  # faster"))
    assert user_registry(tmp_path).get("my_node").code_digest != before


@pytest.mark.parametrize(
    ("source", "line", "message"),
    [
        ("x = 1\nimport nonsense_module_xyz\n", 2, "ModuleNotFoundError"),
        ("def broken(:\n", 1, "SyntaxError"),
        ("a = 1\n\n\nraise ValueError('two\\nlines')\n", 4, "ValueError: two lines"),
    ],
)
def test_a_broken_user_file_is_one_line(tmp_path, source, line, message):
    """File, line, fault and cure in one line, whatever the fault."""
    file = tmp_path / "mine.py"
    file.write_text(source)
    with pytest.raises(RegistryError) as caught:
        user_registry(tmp_path)
    assert str(caught.value).startswith(f"{file}:{line}: {message}") and "\n" not in str(caught.value)


def test_an_incomplete_user_node_is_one_line(tmp_path):
    """A missing line of help in a user's node names file and node."""
    file = tmp_path / "mine.py"
    file.write_text(NODE.format(name="my_node").replace("        amount: How much.\n", ""))
    with pytest.raises(registries.MpmNodesError, match=rf"{file}:\d+: node my_node has no help for amount"):
        user_registry(tmp_path)


def test_an_id_given_twice_names_both_places(tmp_path):
    """Two files with one id are refused with the place of each."""
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text(NODE.format(name="my_node"))
    with pytest.raises(RegistryError) as caught:
        user_registry(tmp_path)
    assert "one.py" in str(caught.value) and "two.py" in str(caught.value)


def test_a_preset_given_twice_names_both_files(tmp_path):
    """A user's preset cannot quietly take the place of another one."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.json").write_text("{}")
    with pytest.raises(RegistryError, match=r"two.mine\.json.*one.mine\.json"):
        registries.load(f"{tmp_path / 'one'}:{tmp_path / 'two'}", builtin=False, entry_points=False)


def test_importing_a_node_from_another_file_is_no_second_declaration(tmp_path):
    """A module may import another one's node; it is the same function."""
    registry = Registry([outer_nodes.box.declaration])
    registry.add_module(outer_nodes)
    assert "box" in registry.nodes()


def test_a_missing_folder_is_named(tmp_path):
    """A wrong entry of MPM_NODES_PATH is an error, not silence."""
    with pytest.raises(RegistryError, match=r"MPM_NODES_PATH.*nowhere is not a folder"):
        user_registry(tmp_path / "nowhere")


def test_an_unknown_id_gives_the_nearest():
    """get() of an unknown name offers near names."""
    with pytest.raises(RegistryError, match="did you mean solve"):
        Registry([f.declaration for f in outer_nodes.NODES]).get("slove")


def test_slow_parts_load_when_something_is_missing():
    """What `later` adds is found by name, by stages() and by iteration, and is loaded once."""
    times = []

    def later(registry: Registry) -> None:
        times.append(1)
        registry.add(outer_nodes.box.declaration)

    registry = Registry([outer_nodes.solve.declaration], later=later)
    assert list(registry.nodes()) == ["solve"] and registry.find("solve") and not times
    assert registry.find("box") and "box" in registry and len(list(registry)) == 2 and times == [1]


def test_entry_points_of_installed_packages_are_found(tmp_path):
    """A package that offers the entry point group "mpm_nodes" adds its module's nodes."""
    (tmp_path / "their_package.py").write_text(NODE.format(name="their_node"))
    info = tmp_path / "their_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[mpm_nodes]\ntheirs = their_package\n")
    code = "from mpm_nodes.graph.declare import registry as r; print(list(r.load('', builtin=False).nodes()))"
    out = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert out.stdout.strip() == "['their_node']"
