"""What a phenomenon says of itself to a core that does not know it."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple, Protocol

import numpy as np

from mpm_nodes.data import Field, Material
from mpm_nodes.user_files import named_places

__all__ = ["MaterialNumber", "Physics", "RetiredNode", "StagesOfPlan"]


class StagesOfPlan(Protocol):
    """What a phenomenon may ask of a plan of substeps (`graph.substeps.SubstepPlan`)."""

    @property
    def fields_needed(self) -> Mapping[str, Any]:
        """Names of the fields that its stages touch, by domain."""

    @property
    def parts(self) -> Sequence[Any]:
        """Its stages one by one, with what each reads and writes."""


class MaterialNumber(NamedTuple):
    """A member of materials that stages declare to read (`graph.declare.reads_of_materials`), in words.

    Attributes:
        said: What messages call it.
        without: What matter does where nothing reads it.
        cure: How to have it read.
        node: Node that gives it.
        functions: What a law is without each of the functions that it needs, by their names.
        laws: Which law to take instead.
    """

    said: str
    without: str
    cure: str
    node: str
    functions: Mapping[str, str] = MappingProxyType({})
    laws: str = ""


@dataclass(frozen=True)
class RetiredNode:
    """What stands for a retired type of node.

    Attributes:
        make: Returns the nodes that stand for one, by name, each with its type, knobs and inputs, given the knobs and inputs of
            the one, the version that the file names, and the frame at which the shot starts. The node called "" keeps its name;
            the others get it in front of theirs. An input ".other" is a wire from the new node called "other".
        knobs: Names of the knobs that it had.
        ports: Names of its inputs.
    """

    make: Callable[[dict[str, Any], dict[str, Any], int | None, int], Mapping[str, dict[str, Any]]]
    knobs: tuple[str, ...]
    ports: tuple[str, ...] = ()


ApartBy = Callable[[Mapping[str, np.ndarray], Collection[str], Sequence[Any]], np.ndarray]


def _no_more(materials: Sequence[Material]) -> tuple[Material, ...]:
    return tuple(materials)


def _nothing(*_: Any) -> None:
    return None


def _no_texts(*_: Any) -> Iterator[str]:
    return iter(())


@dataclass(frozen=True)
class Physics:
    """A phenomenon.

    Its stages, nodes, problems and presets are found in the folders of these names beside its declaration.

    Attributes:
        package: Python package that holds it: `__package__` of its declaration.
        needs: Names of the phenomena whose parts it imports.
        fields: By domain, the fields that it adds.
        optional_columns: Columns of particles that a solve has only where its sources bring the column that stands for each.
        apart: By column whose values keep particles apart where a stage touches it, so that different ones share no node: returns
            those of new particles, given their columns, the names of columns that some source brings, and the laws of materials.
        further_materials: Returns the materials of a solve and, behind them, those that they may become. Raises MpmNodesError.
        complete: Fills in columns of new particles, given their columns and the materials of the solve. Raises MpmNodesError.
        moved_bodies: State of the colliders that move by themselves: module and class, as "numerics.bodies:Bodies"
            (`solver.moved_bodies`). Empty: it moves none.
        refuse_moved_bodies: Raises MpmNodesError where these plans, or several ranks, do not take such colliders.
        refuse_material: Raises MpmNodesError where a material has what no stage of these plans reads; its second argument is what
            the text calls it.
        require_of_material: Raises MpmNodesError where a material has not what a stage of these plans reads. It is asked before a
            cook; in the solve the stage says so itself.
        refuse_matter: Raises MpmNodesError where materials of one solve, with those that they may become, do not fit together. It
            is asked before a cook; in the solve a stage says so itself.
        refuse_columns: By column of the sources that is not 0 everywhere: raises MpmNodesError where no stage of these plans
            reads it.
        refuse_around: By "heat" (air, or heat made in places) or "tension" around the matter: raises MpmNodesError where a stage of
            some of these plans is missing that reads it.
        material_numbers: By name, members of materials that its stages read and that are told of where none does.
        kinds: Stages that say what a substep graph is for: others are recommended only where they have the same of them.
        for_liquids: Stages whose presets are recommended for liquids, and others for solids.
        compiled_for: By preset, returns what its kernels are compiled for ahead of time, each a solve of its own, given what
            finds a material in the library. Presets that nobody names are compiled for rubber.
        warnings_on_ranks: Yields what in these plans is shared among ranks, and costs more than on one.
        wired: Yields what will surprise of what is wired into a solve, given what its preflight is told
            (`graph.declare.PreflightContext`), and what returns the plans. Raises MpmNodesError.
        unread: Yields what of the materials has no effect in the stages of these plans; the last argument says whether a
            collider has a temperature or a flux of heat.
        retired: By type of nodes that it once had, what stands for them in graph files.
    """

    package: str
    needs: tuple[str, ...] = ()
    fields: Mapping[str, Sequence[Field]] = field(default_factory=dict)
    optional_columns: Mapping[str, str] = field(default_factory=dict)
    apart: Mapping[str, ApartBy] = field(default_factory=dict)
    further_materials: Callable[[Sequence[Material]], tuple[Material, ...]] = _no_more
    complete: Callable[[dict[str, np.ndarray], Sequence[Material]], None] = _nothing
    moved_bodies: str = ""
    refuse_moved_bodies: Callable[[Sequence[StagesOfPlan], bool], None] = _nothing
    refuse_material: Callable[[Material, str, Sequence[StagesOfPlan]], None] = _nothing
    require_of_material: Callable[[Material, Sequence[StagesOfPlan]], None] = _nothing
    refuse_matter: Callable[[Sequence[Material]], object] = _nothing
    refuse_columns: Mapping[str, Callable[[Sequence[StagesOfPlan]], None]] = field(default_factory=dict)
    refuse_around: Mapping[str, Callable[[Sequence[StagesOfPlan]], None]] = field(default_factory=dict)
    material_numbers: Mapping[str, MaterialNumber] = field(default_factory=dict)
    kinds: tuple[str, ...] = ()
    for_liquids: tuple[str, ...] = ()
    compiled_for: Mapping[str, Callable[[Callable[[str], Material]], tuple[Material, ...]]] = field(default_factory=dict)
    warnings_on_ranks: Callable[[Sequence[StagesOfPlan]], Iterator[str]] = _no_texts
    wired: Callable[[Any, Callable[[], Sequence[StagesOfPlan]]], Iterator[str]] = _no_texts
    unread: Callable[[Sequence[Material], Sequence[StagesOfPlan], bool], Iterator[str]] = _no_texts
    retired: Mapping[str, RetiredNode] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its name: that of its folder."""
        return self.package.rpartition(".")[2]

    @property
    def folder(self) -> Path:
        """Where it lies."""
        return Path(sys.modules[self.package].__path__[0])

    def modules(self, part: str) -> Iterator[ModuleType]:
        """Import the modules of one of its folders, such as "stages", by name.

        Raises:
            RegistryError: One of a user's phenomenon fails; file and line are named.
        """
        ours = self.package.startswith("mpm_nodes.")
        for file in sorted((self.folder / part).glob("[!_]*.py")):
            with contextlib.nullcontext() if ours else named_places(self.folder):
                module = importlib.import_module(f"{self.package}.{part}.{file.stem}")
            yield module
