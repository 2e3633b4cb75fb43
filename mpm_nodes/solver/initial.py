"""What a solve begins with: columns made whole, the grid's origin, and the gradients of the initial velocities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mpm_nodes.data import ATTRIBUTES, Emitter, Field, Kernel, Material, MpmNodesError, Particles, Walls
from mpm_nodes.data.masses import weighed
from mpm_nodes.graph.plan.substeps import SubstepPlan
from mpm_nodes.materials.contract import law_of
from mpm_nodes.physics import all_physics
from mpm_nodes.solver.bound_law import BoundLaw
from mpm_nodes.solver.grid import GridStore
from mpm_nodes.solver.state import ParticleStore
from mpm_nodes.solver.transfers import Deposit, Take, gather, lines_of, rows_of, scatter

__all__ = [
    "completed",
    "measure_gradients",
    "origin_of",
    "own_fields",
]


def own_fields(laws: Sequence[BoundLaw], plans: Sequence[SubstepPlan], parts: Sequence[Particles]) -> dict[str, Field]:
    """Return the fields of the particles that are not in the table, by name: those of laws, stages and sources.

    Raises:
        MpmNodesError: Two of them describe a field of one name differently, or no stage reads what a
            material or the particles have.
    """
    for law in laws:
        for physics in all_physics():
            physics.refuse_material(law.material, law.label, plans)
    for physics in all_physics():
        for name, refuse in physics.refuse_columns.items():
            if any(np.any(part[name]) for part in parts if name in part):
                refuse(plans)
    described = [(f"law {law.loops.law.id}", field) for law in laws for field in law.loops.law.fields.values()]
    described += [("a stage", field) for plan in plans for field in plan.own_fields["particles"].values()]
    found: dict[str, tuple[str, Field]] = {}
    for owner, field in described:
        first, known = found.setdefault(field.name, (owner, ATTRIBUTES.get(field.name, field)))
        if known != field:
            raise MpmNodesError(f"solve: {owner} describes particles.{field.name} otherwise than {first}; rename one")
    own = {name: field for name, (_, field) in found.items() if name not in ATTRIBUTES}
    columns = dict.fromkeys(name for part in parts for name in part.attributes if name not in ATTRIBUTES)
    return {**own, **{name: _carried(name, parts) for name in columns if name not in own}}


def _carried(name: str, parts: Sequence[Particles]) -> Field:
    """Describe a column that is not in the table: as its source does, or as something that is carried along."""
    known = next((part.field(name) for part in parts if part.field(name)), None)
    if known is not None:
        return known
    column = next(part[name] for part in parts if name in part)
    kind = "real" if column.dtype.kind == "f" else ("int64" if column.dtype.itemsize == 8 else "int32")
    return Field(name, shape=tuple(column.shape[1:]), doc="Carried from the source.", kind=kind, houdini=name)


VOLUME_MISMATCH = 1e-3
"""Share by which a given `volume_change` may differ from the determinant of a given `total_deformation`."""


HEADROOM = 1e12
"""Factor that masses and volumes stay below the largest and above the least number of the solve's float type."""


def completed(
    columns: Mapping[str, np.ndarray], source: Particles, materials: Sequence[Material], dtype: np.dtype
) -> dict[str, np.ndarray]:
    """Fill in mass and volume where the source gives none: a lattice of its spacing at its material's density.

    Laws that hold J themselves get it from a given total deformation.

    Raises:
        MpmNodesError: Masses, volumes or what a phenomenon looks at are out of range, or J contradicts the total deformation.
    """
    columns, count = dict(columns), len(columns["position"])
    for physics in all_physics():
        physics.complete(columns, materials)
    _match_volumes(columns, materials)
    columns.setdefault("volume", np.full(count, source.spacing**3))
    density = np.array([material.density for material in materials])
    columns.setdefault("mass", density[columns["material"]] * columns["volume"])
    _follow_attributes(columns, materials)
    for name in ("mass", "volume"):
        if not count:
            continue
        low, high = float(columns[name].min()), float(columns[name].max())
        if not (np.isfinite(columns[name]).all() and low > 0):
            raise MpmNodesError(f"solve: particle {name} must be finite and > 0; the smallest is {low:g}")
        least, most = float(np.finfo(dtype).tiny) * HEADROOM, float(np.finfo(dtype).max) / HEADROOM
        if not least < low <= high < most:
            raise MpmNodesError(
                f"solve: particle {name} from {low:.3g} to {high:.3g} is out of range in {dtype.name}, which takes {least:.2g} to "
                f"{most:.2g}; give densities and sizes in SI units, or set precision to double"
            )
    return columns


def _follow_attributes(columns: dict[str, np.ndarray], materials: Sequence[Material]) -> None:
    """Refuse particles without the attributes that parameters of their materials follow; weigh those whose density follows one."""
    for index, material in enumerate(materials):
        lanes = np.flatnonzero(columns["material"] == index)
        for name, table in material.tables.items():
            if not len(lanes) or (table.over in ATTRIBUTES and table.over not in columns):
                continue
            if table.over not in columns or np.ndim(columns[table.over]) != 1:
                what = "do not have" if table.over not in columns else "have as a vector"
                raise MpmNodesError(
                    f"material {material.label or material.law}: {name} follows '{table.over}', which its particles {what}; give "
                    "it to them by set_attribute, as a number"
                )
    columns["mass"] = weighed(columns, materials)


def _match_volumes(columns: dict[str, np.ndarray], materials: Sequence[Material]) -> None:
    """Give laws that hold J in `volume_change` that of the total deformation, where that alone is given."""
    if not len(columns["position"]) or "total_deformation" not in columns:
        return
    holds = np.array(["volume_change" in law_of(material)[0].state for material in materials])[columns["material"]]
    change = np.linalg.det(np.asarray(columns["total_deformation"], float).reshape(-1, 3, 3)) - 1.0
    if "volume_change" not in columns:
        columns["volume_change"] = np.where(holds, change, 0.0)
        return
    wrong = holds & (np.abs(columns["volume_change"] - change) > VOLUME_MISMATCH * (1.0 + change))
    if wrong.any():
        first = int(np.flatnonzero(wrong)[0])
        raise MpmNodesError(
            f"solve: volume_change of particle {first} is {columns['volume_change'][first]:g}, but the determinant of its "
            f"total_deformation less 1 is {change[first]:g}; give equal ones, or leave volume_change out"
        )


def origin_of(particles: Particles, walls: Walls | None, emitters: Sequence[Emitter]) -> np.ndarray:
    """Put a grid node on the low corner of the walls, else of the matter: results move with the scene."""
    if walls is not None:
        return np.asarray(walls.low, float)
    parts = [part for part in [particles, *(emitter.template for emitter in emitters)] if len(part)]
    return np.min([part["position"].min(axis=0) for part in parts], axis=0)


def measure_gradients(particles: ParticleStore, grid: GridStore) -> None:
    """Take the gradients of the initial velocities from the grid, as the first explicit substep needs them for its viscosity.

    Nothing is done where no material is viscous or all particles move alike: the gradients are 0 then, as they rest. Bodies in
    velocity fields of their own begin without.

    Args:
        particles: Sorted particles.
        grid: The grid that follows them; its momenta and velocities are cleared afterwards.
    """
    if particles.apart or not any(law.viscosity > 0.0 for law in particles.laws):
        return
    alone = not particles.share.several  # else all ranks do the same, whatever the velocities of one may be
    if alone and not (particles.count and np.ptp(particles.unpack("velocity"), axis=0).any()):
        return
    grid.clear("momentum")
    scatter(particles, grid, Kernel.QUADRATIC, Deposit("momentum", "mass", rows_of("velocity")))
    mass = grid.unpack("mass")[:, None]
    filled = mass > grid.least_mass
    grid.pack("velocity", np.where(filled, grid.unpack("momentum") / np.where(filled, mass, 1.0), 0.0))
    gather(particles, grid, Kernel.QUADRATIC, Take("velocity", gradient=lines_of("velocity_gradient")))
    grid.clear("momentum")
    grid.clear("velocity")
    particles.limits = None
