"""Values that travel on the wires of the outer graph: frozen when published."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from mpm_nodes.data.ambient import SpaceField
from mpm_nodes.data.errors import MpmNodesError
from mpm_nodes.data.fields import ATTRIBUTES, Field
from mpm_nodes.data.menus import CollisionRule, JointKind, WallRule
from mpm_nodes.data.metering import CurvePath, Metering
from mpm_nodes.data.parameter_tables import ParameterTable
from mpm_nodes.data.spatial import SpatialField
from mpm_nodes.data.tensions import SurfaceTension
from mpm_nodes.data.units import Vec3


def frozen(array: np.ndarray) -> np.ndarray:
    """Return `array` C-contiguous and read-only."""
    array = np.ascontiguousarray(array)
    array.setflags(write=False)
    return array


@dataclass(frozen=True)
class Thermal:
    """How a material stores and conducts heat, and when it melts.

    Attributes:
        heat_capacity: Specific heat of the solid [J/(kg K)].
        conductivity: Of the solid [W/(m K)].
        liquid_heat_capacity: Specific heat of the liquid [J/(kg K)].
        liquid_conductivity: Of the liquid [W/(m K)].
        latent_heat: Taken up in melting [J/kg].
        freezing_temperature: Where solid and liquid are in balance [K]; None: it is always solid.
        melt: What the matter is while it is liquid; None: it keeps its law.
    """

    heat_capacity: float
    conductivity: float
    liquid_heat_capacity: float
    liquid_conductivity: float
    latent_heat: float = 0.0
    freezing_temperature: float | None = None
    melt: Material | None = None

    def to_json(self) -> dict[str, Any]:
        """Return every member as plain JSON values."""
        members = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        return {**members, "melt": None if self.melt is None else self.melt.to_json()}

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Thermal:
        """Return what `to_json` described."""
        _check_members(cls, facts)
        melt = facts.get("melt")
        return cls(**{**facts, "melt": None if melt is None else Material.from_json(melt)})


@dataclass(frozen=True)
class Material:
    """A constitutive law with its parameters.

    Attributes:
        law: Id of the law ("snow", "neo_hookean", ...).
        params: Values of the law's `Params` by name, SI.
        density: Undeformed density [kg/m^3].
        label: What messages call it.
        tear_threshold: Plastic distortion |dev C_P| above which the material tears (Y15 sigma_T); None: it never does.
        recovery_time: Time in which plastic distortion is forgotten [s] (Y15 eta_p); None: it never is.
        viscosity: Newtonian viscosity beside what the law has of its own [Pa s]: adds the stress 2 mu sym(grad v).
        thermal: How it stores and conducts heat; None: stages that move heat refuse it.
        surface_tension: Tension of its surface; None: it has none.
        bulk_modulus: Resistance to compression in projections [Pa]; 0 stands for infinity, incompressible. None: what the stage
            that measures volumes says.
        tables: Parameters of the law, "viscosity" or "density", that follow the temperature or another attribute of particles; what
            the other members say of them is not used, but for the density, which is then the least.
        look: How renderers shade it; empty: as its entry in the library or its law says.
    """

    law: str
    params: Mapping[str, float]
    density: float
    label: str = ""
    tear_threshold: float | None = None
    recovery_time: float | None = None
    viscosity: float = 0.0
    thermal: Thermal | None = None
    surface_tension: SurfaceTension | None = None
    bulk_modulus: float | None = None
    tables: Mapping[str, ParameterTable] = field(default_factory=dict)
    look: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return every member, as caches, checkpoints and other programs store it; keyed numbers as they are at their first key."""
        members = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        thermal = None if self.thermal is None else self.thermal.to_json()
        tension = None if self.surface_tension is None else self.surface_tension.to_json()
        tables = {name: table.to_json() for name, table in self.tables.items()}
        return {**members, "params": dict(self.params), "thermal": thermal, "surface_tension": tension, "tables": tables}

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Material:
        """Return the material that `to_json` described; members that an older version did not store take their defaults.

        Raises:
            MpmNodesError: The facts do not describe a material.
        """
        known = {each.name for each in dataclasses.fields(cls)}
        if not isinstance(facts, Mapping) or not {"law", "params", "density"} <= facts.keys() <= known:
            raise MpmNodesError(
                f"material: {facts!r} describes none; it needs law, params and density, and takes {', '.join(sorted(known))}"
            )
        _check_members(cls, facts)
        thermal, tension = facts.get("thermal"), facts.get("surface_tension")
        try:
            return cls(
                **{
                    **facts,
                    "thermal": None if thermal is None else Thermal.from_json(thermal),
                    "surface_tension": None if tension is None else SurfaceTension.from_json(tension),
                    "tables": {name: ParameterTable.from_json(rows) for name, rows in facts.get("tables", {}).items()},
                }
            )
        except (TypeError, ValueError, AttributeError, LookupError) as error:  # tables and rows of another form
            raise MpmNodesError(f"material: {facts!r} describes none ({error})") from error


_MEMBERS = {
    "str": ("text", lambda value: isinstance(value, str)),
    "float": ("a finite number", lambda value: _is_number(value)),
    "float | None": ("a finite number or null", lambda value: value is None or _is_number(value)),
    "Mapping[str, float]": (
        "finite numbers by name",
        lambda value: isinstance(value, Mapping) and all(map(_is_number, value.values())),
    ),
}
"""What members of these types hold, in words, and the test of it."""


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and abs(value) < math.inf


def _check_members(cls: type, facts: Any) -> None:
    """Raise `MpmNodesError` where facts from a file are of other types than a class says of its members."""
    types = {each.name: each.type for each in dataclasses.fields(cls)}
    if not isinstance(facts, Mapping) or not facts.keys() <= types.keys():
        raise MpmNodesError(f"{cls.__name__.lower()}: {facts!r} describes none; it takes {', '.join(sorted(types))}")
    for name, value in facts.items():
        wanted, sound = _MEMBERS.get(str(types[name]), ("", lambda value: True))
        if not sound(value):
            raise MpmNodesError(f"{cls.__name__.lower()}: {name} = {value!r} is not {wanted}")


@dataclass(frozen=True)
class Particles:
    """Frozen particles of the outer graph; on a stage's port, the substep domain of the same name.

    Attributes:
        attributes: Columns by attribute name: shape (n, *ATTRIBUTES[name].shape); `position` is float64 [m].
            Names outside the table are carried along untouched (user primvars).
        materials: Materials that the `material` column indexes.
        spacing: Distance of neighbouring particles on a lattice of equal density [m]; grid cells are twice that.
        time: Simulated seconds since the start frame.
        fields: What laws and stages say of columns of their own, by name.
        STATE_FORMAT: Raised when values that an older version stored can no longer be read.
    """

    STATE_FORMAT: ClassVar[int] = 2

    attributes: Mapping[str, np.ndarray]
    materials: tuple[Material, ...] = ()
    spacing: float = 0.01
    time: float = 0.0
    fields: Mapping[str, Field] = field(default_factory=dict)

    def __post_init__(self) -> None:
        columns = {name: frozen(np.asarray(column)) for name, column in self.attributes.items()}
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise MpmNodesError(f"particles: columns differ in length ({lengths}); give every column one row a particle")
        object.__setattr__(self, "attributes", columns)

    def __len__(self) -> int:
        return len(self.attributes["position"]) if "position" in self.attributes else 0

    def __getitem__(self, name: str) -> np.ndarray:
        return self.attributes[name]

    def __contains__(self, name: str) -> bool:
        return name in self.attributes

    def field(self, name: str) -> Field | None:
        """Return what is known of a column: from the table, or from the law or stage that brought it; None for others."""
        return ATTRIBUTES.get(name) or self.fields.get(name)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(column.nbytes for column in self.attributes.values())

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return JSON-able facts and arrays, as caches and checkpoints store them."""
        facts = {"materials": [material.to_json() for material in self.materials], "spacing": self.spacing, "time": self.time}
        own = {"fields": [field.to_json() for field in self.fields.values()]} if self.fields else {}
        return {**facts, **own}, dict(self.attributes)

    @classmethod
    def joined(cls, parts: Sequence[Particles]) -> Particles:
        """Return the particles of all parts of a solve, in the order of their ids."""
        order = np.argsort(np.concatenate([part["id"] for part in parts]), kind="stable")
        columns = {name: np.concatenate([part[name] for part in parts])[order] for name in parts[0].attributes}
        return dataclasses.replace(parts[0], attributes=columns)

    @classmethod
    def from_arrays(cls, facts: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Particles:
        """Return the particles that `to_arrays` described.

        Raises:
            ValueError: A number or a column is of another kind than its name says, or the materials are not there.
        """
        for name in ("spacing", "time"):
            if type(facts[name]) not in (int, float):
                raise ValueError(f"{name} = {facts[name]!r}")
        for name, column in arrays.items():
            known = ATTRIBUTES.get(name)
            if known is not None and not (column.shape[1:] == known.shape and column.dtype.kind == known.dtype(np.float64).kind):
                raise ValueError(f"{name} of {column.dtype} with shape {column.shape}")
        if "position" not in arrays:
            raise ValueError("no position")
        index = arrays.get("material", np.zeros(0, np.int32))
        if len(index) and not 0 <= index.min() <= index.max() < len(facts["materials"]):
            raise ValueError(f"materials {index.min()} to {index.max()} of {len(facts['materials'])}")
        materials = tuple(Material.from_json(material) for material in facts["materials"])
        own = {each["name"]: Field.from_json(each) for each in facts.get("fields", ())}
        return cls(arrays, materials, facts["spacing"], facts["time"], own)


@dataclass(frozen=True)
class Drop:
    """One copy of an emitter's template: x = rotation (template position) + offset, put into the solve at `time`.

    Attributes:
        time: Seconds since the start frame.
        rotation: Rows of the rotation matrix.
        offset: [m].
    """

    time: float
    rotation: tuple[Vec3, Vec3, Vec3]
    offset: Vec3


@dataclass(frozen=True)
class Emitter:
    """A continuous source: the template streams through the region without end, or whole copies of it are dropped.

    Attributes:
        template: Particles that fill the nozzle once, or the body that is dropped.
        velocity: Speed and direction of the stream, or of every drop [m/s].
        start: First emitting time of a stream, seconds since the start frame.
        end: Last emitting time of a stream, seconds since the start frame.
        drops: The copies, in the order of their times; with any of them the emitter is not a stream.
        metering: How a stream is counted; None: copies of the template follow one another.
        inherit: Share of the nozzle's own velocity that the matter of a stream takes along.
        path: A curve that a stream's nozzle travels, beside the template's own motion.
        deforms: Whether the template keeps its particles in their order as it changes its shape.
        surface: Distance from a surface that a stream leaves along its normals [m], and its gradient; None: it goes by `velocity`.
        jitter: How far each repetition of a stream's particles is born beside its place, at random, as a share of the spacing.
    """

    template: Particles
    velocity: Vec3
    start: float = 0.0
    end: float = float("inf")
    drops: tuple[Drop, ...] = ()
    metering: Metering | None = None
    inherit: float = 1.0
    path: CurvePath | None = None
    deforms: bool = False
    surface: tuple[SpatialField, SpatialField] | None = None
    jitter: float = 0.0


@dataclass(frozen=True)
class Walls:
    """The domain's six walls: an axis-aligned box that matter stays in, side by side.

    Attributes:
        low: Lower corner [m].
        high: Upper corner [m].
        sides: Rules of the sides -x, +x, -y, +y, -z, +z.
        friction: Coulomb coefficient of the sides that separate.
    """

    low: Vec3
    high: Vec3
    sides: tuple[WallRule, WallRule, WallRule, WallRule, WallRule, WallRule]
    friction: float = 0.0


@dataclass(frozen=True)
class RigidJoint:
    """What a rigid body hangs on.

    Attributes:
        kind: What it leaves free.
        parent: Name of the rigid body that it holds on to; empty: it stands still.
        anchor: A point of the axis of a hinge, or the centre of a ball joint, as the body begins [m].
        axis: Of a hinge or a slider, as the body begins; any length but 0.
        limits: Least and largest turn [rad] or way [m] from there; None: any.
        speed: That its motor keeps [rad/s or m/s].
        strength: Largest torque [N m] or force [N] of the motor; 0: it has none.
    """

    kind: JointKind
    parent: str = ""
    anchor: Vec3 = (0.0, 0.0, 0.0)
    axis: Vec3 = (0.0, 1.0, 0.0)
    limits: tuple[float, float] | None = None
    speed: float = 0.0
    strength: float = 0.0


@dataclass(frozen=True)
class RigidBody:
    """What moves a collider where matter, gravity and other bodies push it.

    Attributes:
        name: By which it is found again.
        density: Of its volume [kg/m^3].
        velocity: Of its centre of mass as it begins [m/s].
        angular_velocity: About its centre of mass as it begins [rad/s].
        restitution: Share of the speed with which it bounces off another body, 0 to 1.
        joint: What it hangs on; None: it is free.
    """

    name: str
    density: float
    velocity: Vec3 = (0.0, 0.0, 0.0)
    angular_velocity: Vec3 = (0.0, 0.0, 0.0)
    restitution: float = 0.0
    joint: RigidJoint | None = None


@dataclass(frozen=True, eq=False)
class RigidMotion:
    """Where the rigid bodies of a solve are, and what the matter does to all of its colliders.

    Attributes:
        poses: By the name of a body the quaternions (w, x, y, z), shape (2, 4), and the places [m], shape (2, 3), of its own frame,
            as the frame of the shot begins and ends.
        times: Seconds of the shot of both.
        forces: By the name of a collider the mean force [N] on it over the frame and the mean torque about its centre [N m], shape
            (2, 3); where the solve tells them. Colliders of one name are not in it.
    """

    poses: Mapping[str, tuple[np.ndarray, np.ndarray]]
    times: tuple[float, float]
    forces: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(part.nbytes for pose in (*self.poses.values(), self.forces.values()) for part in pose)

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return JSON-able facts and arrays, as caches and checkpoints store them."""
        turns, places = ([pose[k] for pose in self.poses.values()] for k in (0, 1))
        forces = np.reshape(list(self.forces.values()), (-1, 2, 3))
        arrays = {"turns": np.reshape(turns, (-1, 2, 4)), "places": np.reshape(places, (-1, 2, 3)), "forces": forces}
        return {"names": list(self.poses), "times": list(self.times), "pushed": list(self.forces)}, arrays

    @classmethod
    def from_arrays(cls, facts: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> RigidMotion:
        """Return what `to_arrays` described."""
        begin, end = facts["times"]
        poses = zip(facts["names"], arrays["turns"], arrays["places"], strict=True)
        forces = dict(zip(facts["pushed"], map(frozen, arrays["forces"]), strict=True))
        return cls({name: (frozen(turn), frozen(place)) for name, turn, place in poses}, (begin, end), forces)


@dataclass(frozen=True)
class Collider:
    """A collision body over the frame interval that ends at the cooked frame.

    Attributes:
        name: What messages call it.
        rule: What it does to the relative velocity.
        friction: Coulomb coefficient, used by `CollisionRule.SEPARATE`.
        shape: Posed level sets (`kernels.level_sets.level_set.PosedLevelSets`): one rigid level set with a motion, or several keyed
            ones.
        mesh: Mesh to draw for it at this frame, or None.
        dt_max: Longest substep while it is there [s].
        clamp: Whether what lies inside stays there, held by the grid alone; else it is pushed out.
        temperature: Of its surface [K]; keys travel in it. None: no heat passes through it.
        temperatures: Of places on its surface, in the world; they may change (`at_frame`). None: `temperature` everywhere.
        conductance: Of the contact between matter and body [W/(m^2 K)]; infinite: matter at the surface has its temperature.
        heat_flux: Heat that comes through its surface into matter on it, whatever the temperatures [W/m^2]; keys travel in it.
        contact_angle: Angle between its surface and that of a liquid on it, through the liquid [degrees]; None: that of the solve.
        contact_hysteresis: Advancing less receding angle, which lie evenly around the contact angle [degrees].
        wetting: k_SL / k_LG of places on its surface, in the world; they may change (`at_frame`). None: that of the contact
            angle everywhere.
        still: Whether it is known to stand still in every frame.
        adhesion: Tension that it holds matter by before it lets go [Pa], used by `CollisionRule.SEPARATE`; keys travel in it.
        points_before: Points of `mesh` at the beginning of the frame, or those of `mesh` where the body is rigid [m]; None where
            the mesh only shows it, or its topology changes.
        friction_factor: Factor on the friction of places on its surface, in the world; they may change. None: 1 everywhere.
        adhesion_factor: The same of the adhesion.
        look: Name of how renderers shade its mesh (`materials.looks`); empty: as a plain body, or as the floor where it is level.
        rigid: How it moves by itself; None: as its shape says.
    """

    name: str
    rule: CollisionRule
    friction: float
    shape: Any
    mesh: Mesh | None = None
    dt_max: float = float("inf")
    clamp: bool = False
    temperature: float | None = None
    conductance: float = float("inf")
    heat_flux: float = 0.0
    contact_angle: float | None = None
    contact_hysteresis: float = 0.0
    wetting: SpaceField | None = None
    still: bool = False
    temperatures: SpaceField | None = None
    friction_factor: SpaceField | None = None
    adhesion_factor: SpaceField | None = None
    look: str = ""
    adhesion: float = 0.0
    rigid: RigidBody | None = None
    points_before: np.ndarray | None = None


@dataclass(frozen=True)
class Mesh:
    """A polygon mesh, counter-clockwise seen from outside.

    Attributes:
        points: Shape (n, 3) [m], float64 or float32.
        counts: Vertices of each face, shape (faces,), int32.
        indices: Point indices, shape (counts.sum(),), int32.
        normals: One a point, shape (n, 3), or one a corner, shape (counts.sum(), 3), or None.
        velocities: Point velocities [m/s], shape (n, 3), or None.
        attributes: Further point attributes by name, shape (n, ...).
        materials: Materials that the attribute `material` indexes; empty where nothing tells them.
        matter_volume: Volume that the mesh is to hold, that of its particles as deformed [m^3], or None.
        corners: Attributes of corners by name, as texture coordinates are, shape (counts.sum(), ...).
    """

    points: np.ndarray
    counts: np.ndarray
    indices: np.ndarray
    normals: np.ndarray | None = None
    velocities: np.ndarray | None = None
    attributes: Mapping[str, np.ndarray] = field(default_factory=dict)
    materials: tuple[Material, ...] = ()
    matter_volume: float | None = None
    corners: Mapping[str, np.ndarray] = field(default_factory=dict)


@dataclass(frozen=True)
class LevelSet:
    """A sparse narrow-band level set (or fog volume) in leaves of 8^3 voxels, as OpenVDB stores them.

    Attributes:
        origins: Voxel index of each leaf's first voxel, shape (leaves, 3), int32, multiples of 8.
        values: Shape (leaves, 8, 8, 8) or (leaves, 8, 8, 8, 3) for vectors, float32; voxel (0,0,0) sits at index origins[k].
        voxel_size: [m].
        origin: World position of voxel index (0, 0, 0) [m].
        background: Value outside every leaf [m].
        kind: "level_set", "fog" or "vector".
        name: Grid name ("surface", "density", "vel", ...).
    """

    origins: np.ndarray
    values: np.ndarray
    voxel_size: float
    origin: Vec3 = (0.0, 0.0, 0.0)
    background: float = 0.0
    kind: str = "level_set"
    name: str = "surface"
