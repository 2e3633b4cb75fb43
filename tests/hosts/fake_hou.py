"""A stand-in for Houdini's `hou` that loads the expanded assets and cooks them; it holds documented names only."""

from __future__ import annotations

import contextlib
import re
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fake_hou_dops import dop_types
from fake_hou_geometry import Geometry
from fake_hou_parms import (
    Color,
    Error,
    GeometryPermissionError,
    InvalidInput,
    Keyframe,
    KeyframeValueNotSet,
    NodeError,
    NodeType,
    NodeWarning,
    OperationFailed,
    OperationInterrupted,
    Parm,
    ParmTuple,
    PermissionError,
    Ramp,
    Vector2,
    attribType,
    expand,
    exprLanguage,
    parmTemplateType,
    primType,
    rampBasis,
    severityType,
)

from tests.houdini_assets.dialog_script import ParsedDialog, ParsedParm, parse

CUBE = """#usda 1.0
(
    defaultPrim = "cube"
    metersPerUnit = 1
    upAxis = "Y"
)
def Mesh "cube"
{
    int[] faceVertexCounts = [4, 4, 4, 4, 4, 4]
    int[] faceVertexIndices = [0, 1, 3, 2, 4, 6, 7, 5, 0, 4, 5, 1, 2, 3, 7, 6, 0, 2, 6, 4, 1, 5, 7, 3]
    point3f[] points = [(0,0,0), (0,0,.4), (0,.4,0), (0,.4,.4), (.4,0,0), (.4,0,.4), (.4,.4,0), (.4,.4,.4)]
}
"""
"""What the stand-in's USD Export writes."""

MULTIPARM = "multiparm"


class NodeTypeCategory:
    """The SOP category."""

    def nodeTypes(self) -> dict[str, NodeType]:
        return dict(Houdini.running.types)


_CATEGORY = NodeTypeCategory()


class Node:
    """A SOP, or the network that holds them."""

    def __init__(self, houdini: Houdini, type: NodeType, name: str, parent: Node | None) -> None:
        self._houdini, self._type, self._name, self._parent = houdini, type, name, parent
        self._children: dict[str, Node] = {}
        self._inputs: dict[int, Node] = {}
        self._data: dict[str, str] = {}
        self._place, self._comment, self._buttons = Vector2(), "", type._buttons
        self._tuples = {parm.name: ParmTuple(self, parm) for parm in type._dialog.parms if not parm.inside}
        for group in type._dialog.groups:
            if group.kind == MULTIPARM:
                self._tuples[group.name] = ParmTuple(self, ParsedParm(group.name, group.label, MULTIPARM))
        self._dirty, self._geometry = True, Geometry()
        self._errors: list[str] = []
        self._warnings: list[str] = []
        self._color: Any = None
        self._bypassed = False
        self._id = houdini.next_id()
        houdini.by_id[self._id] = self

    # ------------------------------------------------------------ who it is
    def name(self) -> str:
        return self._name

    def path(self) -> str:
        return "/" + self._name if self._parent is None else f"{self._parent.path()}/{self._name}"

    def parent(self) -> Node | None:
        return self._parent

    def type(self) -> NodeType:
        return self._type

    def sessionId(self) -> int:
        return self._id

    def node(self, node_path: str) -> Node | None:
        return self._children.get(node_path)

    def children(self) -> tuple[Node, ...]:
        return tuple(self._children.values())

    def position(self) -> Vector2:
        return self._place

    def setPosition(self, position: Vector2) -> None:
        assert isinstance(position, Vector2)
        self._place = position

    def comment(self) -> str:
        return self._comment

    def setComment(self, comment: str) -> None:
        self._comment = comment

    def setColor(self, color: Color) -> None:
        assert isinstance(color, Color)
        self._color = color

    def setDisplayFlag(self, on: bool) -> None:
        assert isinstance(on, bool)

    def userData(self, name: str) -> str | None:
        return self._data.get(name)

    def setUserData(self, name: str, value: str) -> None:
        assert isinstance(value, str)
        self._data[name] = value

    def destroyUserData(self, name: str, must_exist: bool = True) -> None:
        if self._data.pop(name, None) is None and must_exist:
            raise OperationFailed(name)

    # ------------------------------------------------------------ making and wiring
    def createNode(
        self,
        node_type_name: str,
        node_name: str | None = None,
        run_init_scripts: bool = True,
        load_contents: bool = True,
        exact_type_name: bool = False,
        force_valid_node_name: bool = False,
    ) -> Node:
        found = self._houdini.types.get(node_type_name)
        if found is None:
            raise OperationFailed(f"{node_type_name}: no such node type")
        name = node_name or f"{node_type_name.split('::')[1] if '::' in node_type_name else node_type_name}1"
        if not re.fullmatch(r"[A-Za-z_][\w.-]*", name, re.ASCII):
            if not force_valid_node_name:
                raise OperationFailed(f"{name}: invalid node name")
            name = re.sub(r"[^\w.-]", "_", name, flags=re.ASCII)
        stem, number = re.sub(r"\d+$", "", name), 1
        while name in self._children:
            name, number = f"{stem}{number}", number + 1
        node = Node(self._houdini, found, name, self)
        self._children[name] = node
        if found._sections and run_init_scripts:
            exec(found._sections["OnCreated"], {"kwargs": {"node": node, "type": found}})
        return node

    def destroy(self, disable_safety_checks: bool = False) -> None:
        del self._parent._children[self._name], self._houdini.by_id[self._id]

    def setInput(self, input_index: int, item_to_become_input: Node | None, output_index: int = 0) -> None:
        if input_index >= self._type._most or output_index != 0:
            raise InvalidInput(f"{self._name}: there is no such connector")
        if item_to_become_input is not None and item_to_become_input._parent is not self._parent:
            raise OperationFailed("nodes of different networks cannot be wired")
        self._inputs.pop(input_index, None)
        if item_to_become_input is not None:
            self._inputs[input_index] = item_to_become_input
        self._set_dirty()

    def inputs(self) -> tuple[Node | None, ...]:
        return tuple(self._inputs.get(k) for k in range(max(self._inputs, default=-1) + 1))

    def parm(self, parm_path: str) -> Parm | None:
        return next((parm for each in self._tuples.values() for parm in each if parm.name() == parm_path), None)

    def parmTuple(self, parm_path: str) -> ParmTuple | None:
        return self._tuples.get(parm_path)

    def parmTuples(self) -> tuple[ParmTuple, ...]:
        return tuple(self._tuples.values())

    def isBypassed(self) -> bool:
        return self._bypassed

    def bypass(self, on: bool) -> None:
        self._bypassed = on

    def _make_instances(self, name: str, count: int) -> None:
        for declared in self._type._dialog.parms:
            for number in range(1, count + 1) if declared.inside == name else ():
                one = ParsedParm(declared.name.replace("#", str(number)), declared.label, declared.type, defaults=declared.defaults)
                self._tuples.setdefault(one.name, ParmTuple(self, one))

    # ------------------------------------------------------------ cooking
    def childTypeCategory(self) -> Any:
        return _CATEGORY if self._parent is not None and self._type.name() in ("geo", "subnet") else None

    def _set_dirty(self) -> None:
        self._dirty = True
        if self._parent is not None and self._parent._type.name() == "subnet" and not self._parent._dirty:
            self._parent._set_dirty()
        for other in self._parent._children.values() if self._parent else ():
            if self in other._inputs.values() and not other._dirty:
                other._set_dirty()

    def cook(self, force: bool = False, frame_range: tuple[int, ...] = ()) -> None:
        if force:
            self._set_dirty()
        self._cook()
        if self._errors:
            raise OperationFailed("\n".join(self._errors))

    def errors(self) -> tuple[str, ...]:
        return tuple(self._errors)

    def warnings(self) -> tuple[str, ...]:
        return tuple(self._warnings)

    def geometry(self, output_index: int = 0) -> Geometry:
        if self._houdini.cooking[-1:] != [self]:
            self.cook()
        return self._geometry

    def inputGeometry(self, index: int) -> Geometry | None:
        source = self._inputs.get(index)
        if source is None:
            return None
        source._cook()
        return None if source._errors else source._geometry

    def geometryAtFrame(self, frame: float, output_index: int = 0) -> Geometry:
        return self.geometry()

    def inputGeometryAtFrame(self, frame: float, index: int) -> Geometry | None:
        return self.inputGeometry(index)

    def _cook(self) -> None:
        if not self._dirty:
            return
        self._dirty, self._errors, self._warnings = False, [], []
        geometry = self._geometry = Geometry()
        for source in self._inputs.values():
            source._cook()
            if source._errors:
                self._errors = [f"{source._name} has an error"]
                return
        for inner in (each for each in self._children.values() if each._type.name() == "output"):
            inner._cook()
            geometry._copy(inner._geometry)
            self._errors = [f"{inner._name} has an error"] if inner._errors else []
        for index in sorted(self._inputs)[: 1 if self._type._sections else None]:
            geometry._copy(self._inputs[index]._geometry)
        if self._type._sections is None:
            return
        self._houdini.cooking.append(self)
        geometry._writable = True
        try:
            exec(compile(self._type._sections["PythonCook"], "PythonCook", "exec"), {})
        except NodeWarning as warning:
            self._warnings = [warning.instanceMessage()]
        except NodeError as error:
            self._errors = [error.instanceMessage()]
        finally:
            geometry._writable = False
            self._houdini.cooking.pop()


# ---------------------------------------------------------------- the program
class InterruptableOperation:
    def __init__(self, operation_name: str, long_operation_name: str | None = None, open_interrupt_dialog: bool = False) -> None:
        self._entered = False

    def __enter__(self) -> InterruptableOperation:
        self._entered = True
        return self

    def __exit__(self, *_: Any) -> None: ...

    def updateLongProgress(self, percentage: float = -1.0, long_op_status: str | None = None) -> None:
        houdini = Houdini.running
        if not self._entered:
            raise OperationFailed("outside of a with statement")
        assert -1.0 <= percentage <= 1.0
        houdini.progress.append((percentage, long_op_status))
        if houdini.interrupt is not None and houdini.interrupt(percentage, long_op_status or ""):
            raise OperationInterrupted()


class Houdini:
    """One session: node types from the expanded assets, /obj/geo1 to work in, and what tests look at."""

    running: Houdini

    def __init__(self, otls: Path, hip: Path) -> None:
        Houdini.running = self
        self.by_id: dict[int, Node] = {}
        self._last_id = 100
        self.types = {**_built_in(), **dop_types(), **{kind.name(): kind for kind in map(_asset_type, sorted(otls.glob("*.hda")))}}
        for kind in self.types.values():
            kind._houdini = self
        self.cooking: list[Node] = []
        self.current_frame, self.has_ui = 1.0, False
        self.variables = {"HIP": str(hip), "FSTART": "1", "FEND": "240", "FPS": "24", "JOB": str(hip)}
        self.progress: list[tuple[float, str | None]] = []
        self.interrupt: Callable[[float, str], bool] | None = None
        self.shown: list[str] = []
        self.selected: list[Node] = []
        self.callbacks: list[Callable[[], None]] = []
        self.roots = {name: Node(self, self.types["geo"], name, None) for name in ("obj", "stage", "out")}
        self.module = self._module()
        self.work = self.roots["obj"].createNode("geo", "geo1")

    def next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def expand(self, text: str, node: Node | None, frame: float) -> str:
        return expand(text, {**self.variables, "OS": node._name if node else "", "F": str(int(frame)), "FF": str(frame)})

    def expression(self, text: str, frame: float) -> float:
        """Evaluate the few expressions that tests use: $FPS, $F * 2."""
        left, _, right = self.expand(text, None, frame).partition("*")
        return float(left) * float(right or 1)

    def _module(self) -> types.ModuleType:
        hou = types.ModuleType("hou")
        for each in (
            Color,
            Error,
            GeometryPermissionError,
            InterruptableOperation,
            Keyframe,
            KeyframeValueNotSet,
            NodeError,
            NodeWarning,
            OperationFailed,
            OperationInterrupted,
            PermissionError,
            Ramp,
            Vector2,
            attribType,
            exprLanguage,
            parmTemplateType,
            primType,
            rampBasis,
            severityType,
        ):
            setattr(hou, each.__name__, each)
        hou.pwd = lambda: self.cooking[-1]
        hou.frame = lambda: self.current_frame
        ends = Vector2(float(self.variables[name]) for name in ("FSTART", "FEND"))
        hou.playbar = types.SimpleNamespace(frameRange=lambda: ends)
        hou.node = lambda path: self._find(path)
        hou.nodeBySessionId = lambda session_id: self.by_id.get(session_id)
        hou.sopNodeTypeCategory = lambda: _CATEGORY
        hou.selectedNodes = lambda: tuple(self.selected)
        hou.nodeType = lambda category, internal_name: self.types.get(internal_name)
        hou.isUIAvailable = lambda: self.has_ui
        hou.text = types.SimpleNamespace(expandString=lambda str, expand_tilde=True: self.expand(str, None, self.current_frame))
        hou.undos = types.SimpleNamespace(group=lambda label, editor=None: contextlib.nullcontext())
        if self.has_ui:
            self.add_ui(hou)
        return hou

    def add_ui(self, hou: types.ModuleType) -> None:
        """Give the session windows; the module `hou.ui` exists only then."""
        self.has_ui = True

        def displayMessage(
            text: str,
            buttons: Any = ("OK",),
            severity: Any = severityType.Message,
            default_choice: int = 0,
            close_choice: int = -1,
            help: Any = None,
            title: Any = None,
        ) -> int:
            self.shown.append(text)
            return 0

        def setStatusMessage(message: str, severity: Any = severityType.Message) -> None:
            self.shown.append(message)

        hou.ui = types.SimpleNamespace(
            displayMessage=displayMessage,
            setStatusMessage=setStatusMessage,
            addEventLoopCallback=self.callbacks.append,
            removeEventLoopCallback=self.callbacks.remove,
        )

    def turn(self) -> None:
        """Let the event loop of the window go round once."""
        for callback in list(self.callbacks):
            callback()

    def _find(self, path: str) -> Node | None:
        first, *rest = path.strip("/").split("/")
        node = self.roots.get(first)
        for part in rest:
            node = node.node(part) if node else None
        return node


def _asset_type(folder: Path) -> NodeType:
    """Read a node type from an expanded asset, as Houdini would: by the index and the lists, not by our generator."""
    index = dict(re.findall(r"^(\w+): *(.*)$", (folder / "INDEX__SECTION").read_text(), re.MULTILINE))
    operator = index["Path"].partition("?")[2]
    lines = (folder / "Sections.list").read_text().splitlines()
    home = folder / next(line.split("\t")[0] for line in lines if line.endswith("\t" + operator))
    listed = [line.split("\t") for line in (home / "Sections.list").read_text().splitlines()[1:]]
    sections = {section: (home / file).read_text() for file, section in listed}
    return NodeType(index["Operator"], parse(sections["DialogScript"]), int(index["Inputs"].split()[-1]), sections)


def _built_in() -> dict[str, NodeType]:
    """Return the few of Houdini's own nodes that the assets touch."""

    def dialog(**parms: str) -> ParsedDialog:
        return ParsedDialog(parms=[ParsedParm(name, name, kind, defaults=[("", "")]) for name, kind in parms.items()])

    def export(node: Node) -> None:
        assert node.inputs()[0] is not None and node.parm("f2").eval() >= node.parm("f1").eval()
        Path(node.parm("lopoutput").evalAsString()).write_text(CUBE)

    kinds = {
        "geo": NodeType("geo", dialog(), 0),
        "null": NodeType("null", dialog(), 1),
        "merge": NodeType("merge", dialog(), 9999),
        "box": NodeType("box", dialog(scale="float", ty="float"), 1),
        "subnet": NodeType("subnet", dialog(), 4),
        "output": NodeType("output", dialog(), 1),
        "object_merge": NodeType("object_merge", dialog(objpath1="oppath", xformtype="integer"), 0),
        "convertheightfield": NodeType("convertheightfield", dialog(), 1),
        "shell": NodeType("shell", dialog(command="string"), 1),
        "usdimport": NodeType("usdimport", dialog(filepath1="file"), 0),
        "sublayer": NodeType("sublayer", dialog(filepath1="file"), 9999),
        "usdexport": NodeType(
            "usdexport",
            dialog(lopoutput="file", trange="integer", f1="float", f2="float", f3="float", execute="button"),
            1,
            None,
            {"execute": export},
        ),
    }
    return kinds


@contextlib.contextmanager
def session(package: Path, hip: Path, monkeypatch: Any) -> Iterator[Houdini]:
    """Give a session that has the package folder loaded: its assets, and its Python as the package file says."""
    import sys

    monkeypatch.syspath_prepend(str(package / "mpm_nodes" / "python"))
    for name in [name for name in sys.modules if name.split(".")[0] == "mpm_nodes_houdini"]:
        monkeypatch.delitem(sys.modules, name)
    houdini = Houdini.__new__(Houdini)
    monkeypatch.setitem(sys.modules, "hou", types.ModuleType("hou"))
    houdini.__init__(package / "mpm_nodes" / "otls", hip)
    monkeypatch.setitem(sys.modules, "hou", houdini.module)
    yield houdini
    for name in [name for name in sys.modules if name.split(".")[0] == "mpm_nodes_houdini"]:
        del sys.modules[name]
