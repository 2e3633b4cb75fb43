"""Colliders that move by themselves: what a solve asks of their state, which a phenomenon declares (`Physics.moved_bodies`)."""

from __future__ import annotations

import dataclasses
import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mpm_nodes.data import Collider, MpmNodesError, StepContext
from mpm_nodes.kernels.collisions.contact_rows import ContactList
from mpm_nodes.kernels.level_sets.level_set import PosedLevelSets
from mpm_nodes.physics import all_physics
from mpm_nodes.solver.device.residency import ArrayParts
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.lost_on_paths import LostOnPaths
from mpm_nodes.solver.minimisation import Minimisation, MinimisationOutcome
from mpm_nodes.solver.state import ParticleStore
from mpm_nodes.solver.stores import Store

if TYPE_CHECKING:
    from mpm_nodes.graph.plan.substeps import SubstepPlan
    from mpm_nodes.solver.walls import WallSet

__all__ = ["Agreement", "MovedBodies", "Solved", "moved_bodies", "refuse_moved_bodies", "two_poses"]

Solved = Callable[[np.ndarray, np.ndarray | None, float | None], tuple[Minimisation, MinimisationOutcome]]
"""Minimises with contacts, from velocities to begin with, or from its own, to a tolerance [cells], or its own."""


class Agreement(NamedTuple):
    """How bodies and matter found one velocity.

    Attributes:
        solves: How often the stage was solved.
        agrees: Whether they have found it.
    """

    solves: int
    agrees: bool


class MovedBodies(Store, ABC):
    """The state of the colliders that move by themselves, which have a `rigid`.

    Attributes:
        numbers: Of each its place among the colliders, shape (n,), int64.
        starts: Centres of mass as the substep began [m], shape (n, 3).
        times: Start and end of the substep moved last [simulated s].
        turns: Quaternions (w, x, y, z) of the bodies' frames then, shape (2, n, 4).
        places: Places of the bodies' frames then [m], shape (2, n, 3).
    """

    lasts = True
    times: np.ndarray
    turns: np.ndarray
    places: np.ndarray

    @property
    @abstractmethod
    def numbers(self) -> np.ndarray:
        """See the class."""

    @property
    @abstractmethod
    def starts(self) -> np.ndarray:
        """See the class."""

    @abstractmethod
    def centres(self) -> np.ndarray:
        """Return the centres of mass [m], shape (n, 3)."""

    @property
    @abstractmethod
    def has_begun(self) -> bool:
        """Whether a frame has begun: not yet where a solve goes on from a checkpoint."""

    @abstractmethod
    def has_moved(self, step: StepContext) -> bool:
        """Whether a stage has moved the bodies through a substep already."""

    @abstractmethod
    def begin_frame(self, colliders: Sequence[Collider], walls: WallSet, origin: np.ndarray, cell_size: float, time: float) -> None:
        """Take the colliders of a frame, with the bodies where they are."""

    @abstractmethod
    def over_the_frame(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Return by name quaternions, shape (2, 4), and places [m], shape (2, 3), of the bodies as the frame began, and now."""

    @abstractmethod
    def speeds(self, matter: np.ndarray) -> Iterator[tuple[str, float, float]]:
        """Yield the name of each body, a bound on the speed of its points [m/s], and how far off it meets nothing [m].

        Args:
            matter: Corners of a box around the matter [m], shape (2, 3).
        """

    @abstractmethod
    def largest_speeds(self) -> Iterator[tuple[str, float]]:
        """Yield the name of each body, and a bound on the speed of its points [m/s]."""

    @abstractmethod
    def newly_fallen(self, matter: np.ndarray, gravity: Sequence[float]) -> list[str]:
        """Return the names of bodies that have fallen below all that they could meet, each once."""

    @abstractmethod
    def place_others(self, real: np.ndarray, dt: float) -> None:
        """Take where all other colliders are as a substep begins, and how they move in it (`Bodies.real`, posed)."""

    @abstractmethod
    def begin_move(self, step: StepContext) -> None:
        """Move the bodies through a substep as if there were no matter, under gravity and forces."""

    @abstractmethod
    def meet(self, grid: GridStore, found: ContactList, respond: Callable[[], None], given: np.ndarray) -> None:
        """Meet all contacts of a substep, those with these bodies so that they move on by what they are given.

        Args:
            grid: The grid; its velocities are changed. Velocities and masses of nodes in contact are on the host.
            found: Its contacts.
            respond: Meets them, and adds to `given`.
            given: What each row of `found` gives to its body, flat [N s]; written.
        """

    @abstractmethod
    def kick(self, particles: ParticleStore, parts: ArrayParts | None, before: np.ndarray, lost: LostOnPaths) -> LostOnPaths:
        """Give the bodies what particles lost on their paths, and return what they then have lost.

        Args:
            particles: The particles, with the velocities that they have now; changed.
            parts: Those that may have lost any; None: all.
            before: Velocities that they had, shape (3, n) [m/s].
            lost: What `lost_on_paths` returned.
        """

    @abstractmethod
    def meet_implicitly(self, grid: GridStore, rows: np.ndarray, solved: Solved) -> tuple[Minimisation, MinimisationOutcome]:
        """Minimise with bodies that move by what their contacts give them; return the last minimisation, and what came of it.

        Args:
            grid: The grid.
            rows: Its contacts, with bodies that move as if there were no matter.
            solved: Minimises.
        """

    @abstractmethod
    def agree(self, solved: Callable[[np.ndarray], np.ndarray], step: StepContext, name: str) -> Agreement:
        """Solve a stage that takes bodies as boundaries until they move as matter lets them.

        Args:
            solved: Solves with bodies of the velocities (v, w), shape (n, 6), and returns impulses and moments, shape (n, 6).
            step: The substep.
            name: Of the stage.
        """


def moved_bodies(colliders: Sequence[Collider], pace: float) -> MovedBodies:
    """Return the state of those colliders that move by themselves.

    Args:
        colliders: All of the solve as it begins.
        pace: Simulated seconds per second of the shot, of the keys that moved them until now.

    Raises:
        MpmNodesError: No phenomenon moves colliders.
    """
    for physics in all_physics():
        if physics.moved_bodies:
            module, _, name = physics.moved_bodies.partition(":")
            found: MovedBodies = getattr(importlib.import_module(f"{physics.package}.{module}"), name)(colliders, pace)
            return found
    names = ", ".join(repr(each.name) for each in colliders if each.rigid is not None)
    raise MpmNodesError(f"colliders: nothing moves {names}, which are to move by themselves; set their `rigid` to None")


def refuse_moved_bodies(plans: Sequence[SubstepPlan], several_ranks: bool) -> None:
    """Refuse colliders that move by themselves where these substeps, or several ranks, have none.

    Raises:
        MpmNodesError: They have none.
    """
    for physics in all_physics():
        physics.refuse_moved_bodies(plans, several_ranks)


def two_poses(shape: PosedLevelSets) -> PosedLevelSets:
    """Return a shape with room for two poses: those of a body as a substep begins and ends."""
    turns, places = (np.repeat(each[:1], 2, axis=0) for each in (shape.rotations, shape.translations))
    return dataclasses.replace(shape, pose_times=np.zeros(2), rotations=turns, translations=places)
