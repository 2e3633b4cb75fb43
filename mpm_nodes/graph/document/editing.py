"""Change a graph that is there: remove, insert, replace, rename, bypass, connect and disconnect nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from mpm_nodes.data.suggestions import nearest
from mpm_nodes.graph.declare.declarations import NodeDeclaration, Port
from mpm_nodes.graph.declare.knobs import to_json
from mpm_nodes.graph.declare.registry import LISTING, Registry, nearest_type
from mpm_nodes.graph.document.entries import ID, Entry
from mpm_nodes.graph.document.recipe import declared_type
from mpm_nodes.graph.files.strict_json import refuse

__all__ = ["Editable"]


class Editable:
    """Nodes and wires of a graph, and what may be done to them. Nodes are given by name or handle, outputs as "node.output".

    Every method raises `GraphError` and changes nothing where it names what is not there.
    """

    nodes: dict[str, Entry]
    _registry: Registry

    def __getitem__(self, name: str) -> Any:
        """Return a node's handle."""
        raise NotImplementedError

    def declaration(self, name: str) -> NodeDeclaration | None:
        """Return the declaration of a node, or None when its type is unknown."""
        found = self._registry.find(self.nodes[name].type) if name in self.nodes else None
        return found if isinstance(found, NodeDeclaration) else None

    # ------------------------------------------------------------ nodes
    def _add(self, type: Any, id: str | None, values: dict[str, Any]) -> str:
        declaration = self._declared(id, type)
        name = id or self._free_name(declaration.id)
        self._check_new(name)
        self.nodes[name] = self._entry(name, declaration, values)
        return name

    def remove(self, node: Any) -> None:
        """Take a node out.

        Who took one of its outputs gets what is wired into its port of the same name, and loses the wire where there is none.
        """
        name = self._known(node)
        declaration = self.declaration(name)
        for output in [each.name for each in declaration.outputs] if declaration else [""]:
            self._redirect(name, output, self.nodes[name].inputs.get(output, []))
        del self.nodes[name]

    def insert(self, type: Any, id: str | None = None, /, *, after: Any = None, before: str | None = None, **values: Any) -> Any:
        """Put a node on wires and return its handle.

        Its first port and output that fit are used; `values` are its knobs and its other ports.

        Args:
            type: Id of the node's declaration, or a declared function.
            id: Its name; made from the type when left out.
            after: The output that it takes ("node", "node.output" or a handle); all who took that take from the new node.
            before: The port ("node.port") whose wires it takes, and which takes from it.

        Raises:
            GraphError: There is no such place, or no port and output that fit.
        """
        if (after is None) == (before is None):
            refuse(id or str(type), "has no place, or two", "give after= an output, or before= a port")
        declaration = self._declared(id, type)
        if after is not None:
            sources = [str(after)]
            users = list(self._users(*self._output(str(after))))
        else:
            name, port = self._port(str(before))
            sources = list(self.nodes[name].inputs.get(port.name, []))
            users = [(name, port.name, source) for source in sources]
            if not sources:
                refuse(str(before), "has no wire", "connect the new node to it instead")
        kinds = [self._type_of(source) for source in sources]
        taking = next((p for p in declaration.ports if all(p.accepts(kind) for kind in kinds)), None)
        giving = next((o for o in declaration.outputs if all(self._accepts(user, port, o.type) for user, port, _ in users)), None)
        if taking is None or giving is None or (len(sources) > 1 and not taking.many):
            refuse(id or declaration.id, f"does not fit between {', '.join(sources)} and those who take it", "wire it with connect")
        new = self._add(type, id, values)
        for user, port_name, source in users:
            given = [new if source == each else each for each in self.nodes[user].inputs[port_name]]
            given = [f"{new}.{giving.name}" if each == new else each for each in given]
            self.nodes[user].connect(port_name, self._written(user, port_name, dict.fromkeys(given)))
        self.nodes[new].connect(taking.name, sources if taking.many else sources[0])
        return self[new]

    def replace(self, node: Any, type: Any, /, **values: Any) -> None:
        """Put another node in the place of one; its name, the wires of ports and the values of knobs that both have stay.

        Wires from outputs that the new node lacks are taken from its first output.
        """
        name = self._known(node)
        old, declaration = self.nodes[name], self._declared(name, type)
        entry = self._entry(name, declaration, values)
        entry.knobs |= {k: v for k, v in old.knobs.items() if declaration.knob(k) and k not in values}
        for port in declaration.ports:
            if port.name in old.inputs and port.name not in entry.inputs:
                entry.connect(port.name, old.wire(port.name))
        entry.position, entry.comment, entry.bypass, entry.editor = old.position, old.comment, old.bypass, old.editor
        outputs = [output.name for output in declaration.outputs]
        gone = {output for _, output in self._taken(name) if output not in outputs}
        users = {output: list(self._users(name, output)) for output in gone}
        self.nodes[name] = entry
        for each in users.values():
            for user, port_name, source in each:
                given = [name if item == source else item for item in self.nodes[user].inputs[port_name]]
                self.nodes[user].connect(port_name, self._written(user, port_name, given))

    def rename(self, node: Any, to: str) -> Any:
        """Give a node another name and return its handle; wires follow. Handles of the old name are void."""
        name = self._known(node)
        self._check_new(to)
        for entry in self.nodes.values():
            for port, sources in entry.inputs.items():
                split = [source.partition(".") for source in sources]
                entry.inputs[port] = [(to if each == name else each) + dot + output for each, dot, output in split]
        renamed = {to if each == name else each: entry for each, entry in self.nodes.items()}
        self.nodes.clear()
        self.nodes.update(renamed)
        return self[to]

    def bypass(self, node: Any, on: bool = True) -> None:
        """Let ports pass through to the outputs of their names instead of cooking a node, or cook it again."""
        self.nodes[self._known(node)].bypass = on

    # ------------------------------------------------------------ wires
    def connect(self, place: str, *sources: Any) -> None:
        """Wire outputs into "node.port": a port for many takes them beside what it has, another one in place of it."""
        name, port = self._port(place)
        for source in sources:
            self._output(str(source))
        if len(sources) != 1 and not port.many:
            refuse(place, f"is given {len(sources)} wires", "give one")
        given = [*(self.nodes[name].inputs.get(port.name, []) if port.many else []), *map(str, sources)]
        self.nodes[name].connect(port.name, self._written(name, port.name, given))

    def disconnect(self, place: str, source: Any = None) -> None:
        """Take all wires off "node.port", or the one from an output."""
        name, port = self._port(place)
        given = self.nodes[name].inputs.get(port.name, [])
        if source is not None and str(source) not in given:
            refuse(place, f"is not wired from {source}", nearest(str(source), given))
        kept = [] if source is None else [each for each in given if each != str(source)]
        if kept:
            self.nodes[name].connect(port.name, kept)
        else:
            self.nodes[name].inputs.pop(port.name, None)

    # ------------------------------------------------------------ how
    def _known(self, node: Any) -> str:
        name = str(node)
        if name not in self.nodes:
            refuse(name, "is not a node of this graph", nearest(name, self.nodes))
        return name

    def _check_new(self, name: str) -> None:
        if name in self.nodes or not ID.fullmatch(name):
            cure = "choose another name: letters, digits, _ and -, not starting with a digit"
            refuse(name, "is taken" if name in self.nodes else "is not a name for a node", cure)

    def _free_name(self, type: str) -> str:
        number = 1
        while f"{type}_{number}" in self.nodes:
            number += 1
        return f"{type}_{number}"

    def _declared(self, name: str | None, type: Any) -> NodeDeclaration:
        found_type, self._registry = declared_type(type, self._registry)
        declaration = self._registry.find(found_type)
        if not isinstance(declaration, NodeDeclaration):
            refuse(
                name or found_type, f"is of type {found_type}, which is unknown", nearest_type(found_type, self._registry.nodes())
            )
        return declaration

    def _entry(self, name: str, declaration: NodeDeclaration, values: dict[str, Any]) -> Entry:
        entry = Entry(declaration.id, declaration.version, declaration.defaults())
        for key, value in values.items():
            if declaration.port(key):
                if value is not None:
                    entry.connect(key, value)
            elif declaration.knob(key):
                entry.knobs[key] = to_json(value)
            else:
                known = [*(port.name for port in declaration.ports), *(knob.name for knob in declaration.knobs)]
                refuse(f"{name}.{key}", "is neither a port nor a knob", nearest(key, known, f"{LISTING} {declaration.id}"))
        return entry

    def _port(self, place: str) -> tuple[str, Port]:
        name, _, port_name = place.partition(".")
        declaration = self.declaration(self._known(name))
        port = declaration.port(port_name) if declaration else None
        if port is None:
            ports = [each.name for each in declaration.ports] if declaration else []
            refuse(place, "is not an input port", nearest(port_name, ports))
        return name, port

    def _output(self, place: str) -> tuple[str, str]:
        """Return node and output of a wire's source; the first output is meant when none is named."""
        name, dot, output = place.partition(".")
        declaration = self.declaration(self._known(name))
        names = [each.name for each in declaration.outputs] if declaration else [output]
        if (dot and output not in names) or not names:
            refuse(place, "is not an output", nearest(output, names))
        return name, output or names[0]

    def _type_of(self, place: str) -> Any:
        name, output = self._output(place)
        declaration = self.declaration(name)
        found = declaration.output(output) if declaration else None
        return found.type if found else Any

    def _accepts(self, user: str, port_name: str, type: Any) -> bool:
        declaration = self.declaration(user)
        port = declaration.port(port_name) if declaration else None
        return port is None or port.accepts(type)

    def _taken(self, name: str) -> Iterator[tuple[str, str]]:
        """Yield (source as written, output) of every wire from a node."""
        declaration = self.declaration(name)
        first = declaration.outputs[0].name if declaration and declaration.outputs else ""
        for entry in self.nodes.values():
            for source in (each for sources in entry.inputs.values() for each in sources):
                node, _, output = source.partition(".")
                if node == name:
                    yield source, output or first

    def _users(self, name: str, output: str) -> Iterator[tuple[str, str, str]]:
        """Yield (node, port, source as written) of every wire from an output."""
        written = {source for source, each in self._taken(name) if each == output}
        for user, entry in self.nodes.items():
            for port, sources in entry.inputs.items():
                for source in sources:
                    if source in written:
                        yield user, port, source

    def _redirect(self, name: str, output: str, through: list[str]) -> None:
        for user, port, source in list(self._users(name, output)):
            given = self.nodes[user].inputs[port]
            at = given.index(source)
            kept = [*given[:at], *through, *given[at + 1 :]]
            if kept:
                self.nodes[user].connect(port, self._written(user, port, kept))
            else:
                self.nodes[user].inputs.pop(port)

    def _written(self, name: str, port_name: str, sources: Iterable[str]) -> Any:
        """Return wires as `Entry.connect` takes them: a list where the port takes many or has several."""
        given = list(sources)
        declaration = self.declaration(name)
        port = declaration.port(port_name) if declaration else None
        return given if len(given) != 1 or (port is not None and port.many) else given[0]
