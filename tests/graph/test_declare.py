"""A function's signature is its declaration; what is missing is refused with one sentence."""

from __future__ import annotations

import enum
import inspect
import re
from pathlib import Path
from typing import Annotated as A
from typing import NamedTuple

import outer_nodes
import plan_stages
import pytest

from mpm_nodes import data
from mpm_nodes.data import (
    Material,
    Mesh,
    Metres,
    OutputPath,
    Particles,
    Range,
    Reads,
    Stage,
    SubstepGraph,
    Vec3,
)
from mpm_nodes.graph.declare.decorators import DeclarationError, node, parse_docstring, stage


class Colour(enum.Enum):
    """A menu."""

    RED = "red"
    BLUE = "blue"


def test_contents_are_of_knobs_for_files():
    """Names that are not knobs, and knobs that do not name files, are refused."""
    for name in ("nothing", "size"):
        with pytest.raises(DeclarationError, match=f"contents names '{name}', which is not a knob for a file"):

            @node(category="Test", label="Read", contents={name: lambda told: ""})
            def read(*, path: Path, size: float = 1.0) -> Mesh:
                """Read.

                Args:
                    path: The file.
                    size: A number.
                """


def test_a_declared_function_stays_plain():
    """Decorating adds `declaration` and nothing else: the function can be called as it was."""
    assert inspect.isfunction(outer_nodes.stuff)
    assert outer_nodes.stuff(density=3.0).density == 3.0


def test_ports_are_positional_and_knobs_keyword_only():
    """Everything before `*` is a port, everything after it a knob, in order."""
    declaration = outer_nodes.solve.declaration
    assert [(p.name, p.many, p.optional) for p in declaration.ports] == [
        ("sources", True, False),
        ("obstacle", False, True),
    ]
    assert [knob.name for knob in declaration.knobs] == ["gravity", "substeps"]
    assert [(output.name, output.type) for output in declaration.outputs] == [("particles", Particles), ("mesh", Mesh)]


def test_special_arguments_are_recognised_by_type():
    """ctx makes a node time-dependent, Previous sequential, settings enter the key; none of them is a port."""
    declaration = outer_nodes.solve.declaration
    assert declaration.wants_ctx and declaration.wants_settings and declaration.previous_type is Particles
    assert declaration.previous_output() == "particles"
    assert not outer_nodes.box.declaration.wants_ctx


def test_a_single_output_is_named_after_its_type():
    """A node that returns Particles has the output "particles", so that it can pass through its port of that name."""
    assert [output.name for output in outer_nodes.box.declaration.outputs] == ["particles"]
    assert outer_nodes.write.declaration.outputs == ()


def test_knob_kinds_follow_the_hints():
    """Each hint of the design becomes its kind of knob, with unit, range, help and choices."""

    @node(category="x", label="x")
    def all_kinds(
        *,
        a: bool = True,
        b: A[int, Range(min=0)] = 1,
        c: A[float, Metres, Range(max=5.0)] = 1.0,
        d: str = "",
        e: Path = Path("x"),
        f: OutputPath = Path("y"),
        g: Vec3 = (0, 0, 0),
        h: tuple[int, int] = (1, 2),
        i: tuple[str, ...] = ("p",),
        j: Colour = Colour.BLUE,
        k: SubstepGraph = "simple",
        m: float | None = None,
        n: A[Vec3, Metres] | None = None,
    ) -> None:
        """Take one of each.

        Args:
            a: help a
            b: help b
            c: help c,
                in two lines
            d: help d
            e: help e
            f: help f
            g: help g
            h: help h
            i: help i
            j: help j
            k: help k
            m: help m
            n: help n
        """

    knobs = {knob.name: knob for knob in all_kinds.declaration.knobs}
    kinds = "bool int float str path output_path vector vector strings enum substeps float vector".split()
    assert [knob.kind for knob in knobs.values()] == kinds
    assert knobs["c"].unit == "m" and knobs["c"].range.max == 5.0 and knobs["c"].doc == "help c, in two lines"
    assert knobs["j"].choices == ("red", "blue") and knobs["j"].json_default() == "blue"
    assert (knobs["g"].size, knobs["g"].element, knobs["h"].size, knobs["h"].element) == (3, float, 2, int)
    assert knobs["m"].optional and knobs["n"].optional and knobs["n"].unit == "m" and not knobs["c"].optional


def test_a_generated_function_is_declared_from_its_signature():
    """A function with a synthesized signature is declared like a written one."""

    def make(**values):
        return Material("x", values, 1.0)

    make.__name__ = "material_made"
    make.__doc__ = "Make it.\n\nArgs:\n    stiffness: How stiff.\n"
    hint = A[float, Range(min=0.0)]
    make.__annotations__ = {"stiffness": hint, "return": Material}
    make.__signature__ = inspect.Signature(
        [inspect.Parameter("stiffness", inspect.Parameter.KEYWORD_ONLY, default=2.0, annotation=hint)],
        return_annotation=Material,
    )
    declaration = node(category="Material", label="Made")(make).declaration
    assert declaration.id == "material_made" and declaration.knob("stiffness").default == 2.0


HELP = '"""Do.\n\n    Args:\n        x: a number\n    """'
REFUSED_NODES = [
    (f"def a(*, x=1.0) -> None:\n    {HELP}", "no type hint for x"),
    ("def a(*, x: float = 1.0) -> None:\n    'Do.'", "no help for x"),
    (f"def a(*, x: float = 1.0):\n    {HELP}", "no return type"),
    (f"def a(*, x: set = 1.0) -> None:\n    {HELP}", "knob x of type set"),
    (f"def a(*, x: A[float, Range(min=2.0)] = 1.0) -> None:\n    {HELP}", "default 1.0 is out of range"),
    (f"def a(*, x: int = 'no') -> None:\n    {HELP}", "default 'no' is text"),
    (f"def a(x: Particles = 3) -> None:\n    {HELP}", "port x with default 3"),
    (f"def a(*x: Particles) -> None:\n    {HELP}", r"takes \*x"),
    (f"def a(x: Previous[Mesh]) -> Particles:\n    {HELP}", "previous Mesh but returns none"),
    (f"def a() -> None:\n    {HELP}", "help for x, which it does not take"),
    ("def a() -> None:\n    pass", "no docstring"),
    (f"def A_(*, x: float = 1.0) -> None:\n    {HELP}", "lower case"),
    ("def a(x: 'Missing') -> None:\n    'Do.'", "cannot be resolved"),
]


@pytest.mark.parametrize(("source", "message"), REFUSED_NODES)
def test_an_incomplete_node_is_refused(source, message):
    """What is missing is named in one sentence that begins with the place."""
    scope: dict = {**vars(data), "__name__": "their_nodes"}
    exec(compile(source, "their_nodes.py", "exec"), scope)
    name = source.split("(")[0].removeprefix("def ")
    with pytest.raises(DeclarationError, match=message) as caught:
        node(category="x", label="x")(scope[name])
    assert re.match(rf"their_nodes.py:1: node {name} ", str(caught.value)) and "\n" not in str(caught.value)


REFUSED_STAGES = [
    ('def a(particles: A[Particles, Writes("mass")]) -> Stage["grid"]: "Do."', "returns grid, which it does not take"),
    (
        'def a(particles: A[Particles, Writes("mass")], grid: A[Grid, Reads()]) -> Stage["grid"]: "Do."',
        "does not return it",
    ),
    ('def a(particles: A[Particles, Writes("mas")]) -> Stage["particles"]: "Do."', "particles.mas, which is unknown"),
    ('def a(grid: A[Grid, Reads("deformation")]) -> Stage["grid"]: "Do."', "grid.deformation, which is unknown"),
    ('def a(colliders: A[Colliders, Reads("mass")]) -> Stage["colliders"]: "Do."', "colliders.mass, which is unknown"),
    ('def a(particles: Particles) -> Stage["particles"]: "Do."', "does not say what it touches"),
    ('def a(dust: A[Particles, Reads()]) -> Stage["particles"]: "Do."', "call it particles"),
    ('def a(particles: A[Particles, Reads()]): "Do."', "no return type"),
    ('def a(particles: A[Particles, Reads()]) -> None: "Do."', "no return type"),
    ('def a(x: float) -> Stage["particles"]: "Do."', "before the \\*"),
    ('def a(step: StepContext) -> Stage["particles"]: "Do."', "touches no domain"),
]


@pytest.mark.parametrize(("source", "message"), REFUSED_STAGES)
def test_an_incomplete_stage_is_refused(source, message):
    """Unknown arrays, unreturned domains and missing types are named in one sentence."""
    scope: dict = {**vars(data), "__name__": "their_nodes"}
    exec(compile(source, "their_nodes.py", "exec"), scope)
    with pytest.raises(DeclarationError, match=message):
        stage(label="x")(scope["a"])


def test_only_a_stage_with_a_step_sets_dt():
    """`sets` takes dt alone, and needs the step that it sets it in."""

    def a(particles: A[Particles, Reads()]) -> Stage["particles"]:
        """Do."""

    with pytest.raises(DeclarationError, match="without a step"):
        stage(label="x", sets=("dt",))(a)
    with pytest.raises(DeclarationError, match="only dt"):
        stage(label="x", sets=("time",))(a)


def test_upgrades_must_start_from_older_versions():
    """An upgrade from the present version or a later one is refused at import."""

    def a() -> None:
        """Do."""

    with pytest.raises(DeclarationError, match="upgrade"):
        node(category="x", label="x", version=2, upgrades={2: lambda k, i: (k, i)})(a)


def test_a_stage_declares_domains_and_arguments():
    """Reads, writes, user attributes, outputs and the order of the arguments are read from the signature."""
    push, heat = plan_stages.push.declaration, plan_stages.heat.declaration
    assert push.arguments == ("step", "grid") and push.wants_step and push.outputs == ("grid",)
    assert push.domain("grid").reads == push.domain("grid").writes == ("momentum",)
    assert heat.domain("particles").own == (plan_stages.WARMTH,)
    assert plan_stages.pass_grid.declaration.is_transparent and not push.is_transparent


class Points:
    """The store of a solver, as far as a declaration looks at it."""

    domain = data.PARTICLES


def test_the_class_of_a_store_stands_for_the_ports_of_its_domain():
    """A stage may name the store that it is handed, so that type checkers know all of it."""

    @stage(label="Shift")
    def shift(particles: A[Points, Reads("position")]) -> Stage["particles"]:
        """Shift."""

    (port,) = shift.declaration.domains
    assert port.name == "particles" and port.reads == ("position",)


def test_a_port_accepts_subclasses_and_unions():
    """A wire fits when each type that may arrive is one of the port's types or derived from one."""

    class Fine(Particles):
        pass

    port = outer_nodes.solve.declaration.port("sources")
    assert port.accepts(Particles) and port.accepts(Fine) and port.accepts(Particles | Material)
    assert not port.accepts(Mesh) and not port.accepts(Particles | Mesh)


def test_outputs_are_unpacked_by_name():
    """A NamedTuple gives one value per output, a plain value the only one, None none."""
    particles, mesh = Particles({}), object()
    assert outer_nodes.solve.declaration.unpack(outer_nodes.Solved(particles, mesh)) == {
        "particles": particles,
        "mesh": mesh,
    }
    assert outer_nodes.box.declaration.unpack(particles) == {"particles": particles}
    assert outer_nodes.write.declaration.unpack(None) == {}


def test_a_named_tuple_that_is_itself_the_value_of_no_output_is_no_special_case():
    """Fields of the returned NamedTuple are outputs even when there is only one."""

    class One(NamedTuple):
        mesh: Mesh

    assert parse_docstring("Do.\n\nMore.")[0] == "Do."
    declaration = node(category="x", label="x")(_returning(One)).declaration
    value = object()
    assert declaration.unpack(One(value)) == {"mesh": value}


def _returning(kind):
    def one():
        """Do."""

    one.__annotations__ = {"return": kind}
    return one


def test_artists_words_go_to_the_menus_and_change_nothing_else():
    """The declaration is the same but for them; what is not a word is refused."""
    from mpm_nodes.graph.declare.decorators import found_by
    from mpm_nodes.hosts.spec import host_spec

    found = {record["id"]: record.get("words", []) for record in host_spec()["nodes"]}
    assert "tornado" in found["force_vortex"] and "glue" in found["collider_contact"] and found["collide_box"] == []

    @node(category="Test", label="Plain")
    def plain_node() -> Particles:
        """Do nothing."""
        raise NotImplementedError

    before = plain_node.declaration
    assert found_by("glue")(plain_node).declaration == before and plain_node.declaration.words == ("glue",)
    with pytest.raises(DeclarationError, match="'two words'"):
        found_by("two words")(plain_node)
