"""Port types, unit markers, knob ranges and THE attribute table: the words that every other room speaks.

Everything here is SI, numpy only, and frozen once published. Importing this module loads neither numba nor pxr.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated as A
from typing import Any, Generic, TypeVar

import numpy as np

T = TypeVar("T")

__all__ = [
    "ATTRIBUTES",
    "GRID_ARRAYS",
    "LAW_STATE",
    "A",
    "Attribute",
    "Cancelled",
    "Collider",
    "Colliders",
    "CollisionRule",
    "Drop",
    "Emitter",
    "Energy",
    "FrameContext",
    "GraphSettings",
    "Grid",
    "InputError",
    "Kernel",
    "Krylov",
    "LevelSet",
    "Many",
    "Material",
    "Mesh",
    "MpmNodesError",
    "OutputError",
    "OutputPath",
    "Particles",
    "Preconditioner",
    "Previous",
    "Range",
    "Reads",
    "Stage",
    "StepContext",
    "SubstepGraph",
    "Transfer",
    "Unit",
    "Vec3",
    "WallRule",
    "Walls",
    "Writes",
    "WrittenPath",
]


# ---------------------------------------------------------------- errors
class MpmNodesError(Exception):
    """Base of every error that is the user's to mend: one line saying where, what was given, what is allowed, the cure."""

    exit_code = 2


class InputError(MpmNodesError):
    """A file or value from outside cannot be used (exit code 5 for files, see `OutputError` for writing)."""

    exit_code = 5


class OutputError(MpmNodesError):
    """A result cannot be written: folder, permission, disk space (exit code 5)."""

    exit_code = 5


class Cancelled(MpmNodesError):
    """The user asked to stop; what was committed before stays (exit code 3)."""

    exit_code = 3


# ---------------------------------------------------------------- units and ranges
@dataclass(frozen=True)
class Unit:
    """Unit of a knob or attribute; `symbol` is what artists see."""

    symbol: str


Unitless = Unit("")
Metres = Unit("m")
Seconds = Unit("s")
Pascals = Unit("Pa")
PascalSeconds = Unit("Pa s")
PascalSecondsToThePower = Unit("Pa s^n")
MetresPerSecond = Unit("m/s")
MetresPerSecondSquared = Unit("m/s^2")
KilogramsPerCubicMetre = Unit("kg/m^3")
Degrees = Unit("deg")
RadiansPerSecond = Unit("rad/s")
Frames = Unit("frames")


@dataclass(frozen=True)
class Range:
    """Allowed values of a numeric knob: hard `min`/`max`, `soft_*` limits of its slider, `log` for a logarithmic slider."""

    min: float | None = None
    max: float | None = None
    soft_min: float | None = None
    soft_max: float | None = None
    log: bool = False
    exclusive_min: bool = False

    def problem(self, value: float) -> str | None:
        """Return the allowed interval as text when `value` lies outside it, else None."""
        below = self.min is not None and (value < self.min or (self.exclusive_min and value == self.min))
        above = self.max is not None and value > self.max
        return self.words() if below or above else None

    def words(self) -> str:
        """Return the allowed interval as text: ">= 0 and <= 1"; "" without limits."""
        low = "" if self.min is None else (f"> {self.min:g}" if self.exclusive_min else f">= {self.min:g}")
        high = "" if self.max is None else f"<= {self.max:g}"
        return " and ".join(part for part in (low, high) if part)


Vec3 = tuple[float, float, float]


@dataclass(frozen=True)
class WrittenPath:
    """Marks a `Path` knob that names something the node writes: relative to the output root, never above it."""


OutputPath = A[Path, WrittenPath()]
"""Type of a knob that names a file or folder to write; plain `Path` names something to read."""


class SubstepGraph:
    """Knob type: a preset's name, `{"preset": name, "set": {...}}`, or a whole substeps document."""


# ---------------------------------------------------------------- what a stage touches
@dataclass(frozen=True, init=False)
class Reads:
    """Attributes that a stage reads through a port.

    Attributes:
        names: Names of the attributes.
        when: (knob, value): they are read only where the knob has that value; None: always.
    """

    names: tuple[str, ...]
    when: tuple[str, Any] | None

    def __init__(self, *names: str, when: tuple[str, Any] | None = None) -> None:
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "when", when)


@dataclass(frozen=True, init=False)
class Writes:
    """Attributes that a stage writes through a port (name it in `Reads` as well when the old value matters)."""

    names: tuple[str, ...]

    def __init__(self, *names: str) -> None:
        object.__setattr__(self, "names", names)


GRID_ARRAYS: dict[str, str] = {
    "mass": "Mass of a node [kg].",
    "momentum": "Momentum of a node [kg m/s].",
    "force": "Force on a node [N].",
    "velocity": "Velocity of a node [m/s].",
    "position": "Position of a node [m]; always known.",
}
"""Names that a stage may read and write on the grid."""

LAW_STATE = "law_state"
"""Stands, in `Reads` and `Writes`, for the state attributes of every law used in the solve."""


class Stage:
    """Return annotation of a stage: `Stage["particles", "grid"]` names the ports that leave it."""

    def __class_getitem__(cls, names: str | tuple[str, ...]) -> Any:
        return A[Stage, (names,) if isinstance(names, str) else tuple(names)]


class Grid:
    """Substep domain: the sparse background grid (collocated nodes)."""


class Colliders:
    """Substep domain: every collider of the solve, posed at the end of the substep."""


class Energy:
    """Substep domain: the energy terms whose sum an implicit update minimises."""


# ---------------------------------------------------------------- signature markers of the outer graph
class Previous(Generic[T]):
    """`Previous[T]` argument: this node's own `T` output of the frame before (None on the first frame); makes it sequential."""


class Many(Generic[T]):
    """`Many[T]` input port: takes any number of wires, in the order of the graph file, as a tuple."""


@dataclass(frozen=True)
class GraphSettings:
    """Settings of the whole graph, part of every lineage key of a node that asks for them.

    Attributes:
        cell_size: The one resolution knob: edge of a background grid cell [m]; seeding follows it.
        fps: Frames per second.
        start: First frame of the shot.
        end: Last frame of the shot.
    """

    cell_size: float = 0.02
    fps: float = 24.0
    start: int = 1
    end: int = 48


@dataclass(frozen=True)
class FrameContext:
    """What a time-dependent node is told about the frame being cooked.

    Attributes:
        frame: Frame number. The state at the start frame is the initial state; cooking frame f advances f-1 -> f.
        settings: The graph's settings.
        report: Call with keyword arguments to publish a progress event (`report("substep", dt=..., particles=...)`).
        check_cancel: Raises `Cancelled` when the user asked to stop.
        sample: `sample(knob_name, frame)` gives this node's knob at a fractional frame (keyed knobs are interpolated).
        files: The frame's transaction (`graph.transaction.FrameTransaction`) for nodes that write files, else None.
        base: Folder that relative input paths in the graph are resolved against.
        checked: Whether stages are run twice to catch declarations that lie (`--checked`).
        fuse: Whether neighbouring stages may run as one kernel (not with `--no-fuse`).
    """

    frame: int
    settings: GraphSettings = field(default_factory=GraphSettings)
    report: Callable[..., None] = lambda *args, **kwargs: None
    check_cancel: Callable[[], None] = lambda: None
    sample: Callable[[str, float], Any] | None = None
    files: Any = None
    base: Any = None
    checked: bool = False
    fuse: bool = True

    @property
    def time(self) -> float:
        """Seconds since the start frame."""
        return (self.frame - self.settings.start) / self.settings.fps

    @property
    def frame_duration(self) -> float:
        """Seconds per frame."""
        return 1.0 / self.settings.fps


@dataclass
class StepContext:
    """What a stage is told about the substep: `step: StepContext` is an argument, not a wire.

    Attributes:
        dt: Length of the substep [s]; written by the one stage declared with `sets=("dt",)`.
        time: Simulated seconds at the start of the substep, since the start frame.
        time_left: Seconds to the end of the frame; dt never exceeds it.
        frame: Frame being advanced to.
        substep: Index of the substep within the frame.
        dt_min: Shortest substep that the artist allows [s].
        dt_max: Longest substep that the artist allows [s].
        gravity: Acceleration [m/s^2], sampled at this substep.
        cell_size: Grid spacing h [m].
        keep: Whether attributes that no later substep reads are to be stored, for those who look at the state afterwards.
        report: dict that stages fill with facts for the progress line (limit, limit_material, ...).
        check_cancel: Raises when the user asked to stop; for stages that take seconds.
    """

    dt: float = 0.0
    time: float = 0.0
    time_left: float = float("inf")
    frame: int = 0
    substep: int = 0
    dt_min: float = 0.0
    dt_max: float = 0.01
    gravity: Vec3 = (0.0, -9.81, 0.0)
    cell_size: float = 0.02
    keep: bool = True
    report: dict[str, Any] = field(default_factory=dict)
    check_cancel: Callable[[], None] = lambda: None


# ---------------------------------------------------------------- menus shared by stages and nodes
class Transfer(enum.Enum):
    """Particle-grid transfer."""

    APIC = "apic"
    FLIP = "flip"


class Kernel(enum.Enum):
    """B-spline interpolation kernel."""

    QUADRATIC = "quadratic"
    CUBIC = "cubic"


class Krylov(enum.Enum):
    """Method for the linear systems of an implicit update."""

    CONJUGATE_GRADIENT = "conjugate_gradient"
    CONJUGATE_RESIDUAL = "conjugate_residual"


class Preconditioner(enum.Enum):
    """What the linear systems of an implicit update are scaled by."""

    BLOCK_JACOBI = "block_jacobi"
    JACOBI = "jacobi"
    MASS = "mass"
    NONE = "none"


class CollisionRule(enum.Enum):
    """What a collider does to the relative velocity (method: grid collisions)."""

    STICKY = "sticky"
    SLIP = "slip"
    SEPARATE = "separate"


class WallRule(enum.Enum):
    """What one side of the domain does to matter that reaches it."""

    STICKY = "sticky"
    SLIP = "slip"
    SEPARATE = "separate"
    OPEN = "open"
    DELETE = "delete"


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


# ---------------------------------------------------------------- THE attribute table
@dataclass(frozen=True)
class Attribute:
    """One particle attribute: everything any room needs to know about it, stated once.

    Attributes:
        name: Name in the public API and in stage declarations.
        symbol: Symbol in the papers and kernels.
        shape: Shape per particle, () for scalars.
        unit: SI unit.
        usd: Name in USD: a schema attribute ("points") or a primvar ("primvars:...").
        houdini: Attribute name in Houdini.
        doc: One line.
        kind: "real" (the solve's float type), "int32" or "int64".
        rest: Value of an untouched particle: a scalar, or "identity" for a matrix.
    """

    name: str
    symbol: str
    shape: tuple[int, ...]
    unit: str
    usd: str
    houdini: str
    doc: str
    kind: str = "real"
    rest: float | str = 0.0

    @property
    def rows(self) -> int:
        """Number of scalar components per particle."""
        return int(np.prod(self.shape, dtype=int)) if self.shape else 1

    def rest_values(self, count: int, dtype: Any = np.float32) -> np.ndarray:
        """Values of `count` untouched particles, shape (count, *shape)."""
        dtype = dtype if self.kind == "real" else np.dtype(self.kind)
        values = np.zeros((count, *self.shape), dtype)
        values[:] = np.eye(3, dtype=dtype) if self.rest == "identity" else self.rest
        return values


ATTRIBUTES: dict[str, Attribute] = {
    a.name: a
    for a in (
        Attribute("position", "x", (3,), "m", "points", "P", "Position."),
        Attribute("velocity", "v", (3,), "m/s", "velocities", "v", "Velocity."),
        Attribute("id", "id", (), "", "ids", "id", "Stable identity, never reused.", "int64"),
        Attribute("material", "mat", (), "", "primvars:material", "material", "Index into the materials.", "int32"),
        Attribute("mass", "m", (), "kg", "primvars:mass", "mass", "Mass."),
        Attribute("volume", "V0", (), "m^3", "primvars:volume", "vol", "Undeformed volume."),
        Attribute("density", "rho", (), "kg/m^3", "primvars:density", "density", "Density, as `measure_density` finds it."),
        Attribute("affine", "C", (3, 3), "1/s", "primvars:C", "C", "APIC affine velocity."),
        Attribute("velocity_gradient", "L", (3, 3), "1/s", "primvars:L", "gradv", "Gradient of the grid velocity."),
        Attribute("deformation", "F", (3, 3), "", "primvars:F", "F", "Elastic deformation gradient.", rest="identity"),
        Attribute("volume_change", "e", (), "", "primvars:e", "Jminus1", "J - 1: relative change of volume."),
        Attribute("elastic_strain", "b - I", (6,), "", "primvars:elastic_strain", "elasticstrain",
                  "Elastic left Cauchy-Green strain up to its volume, less the unit: xx xy xz yy yz zz."),
        Attribute("total_deformation", "F", (3, 3), "", "primvars:total_deformation", "Ftotal",
                  "Deformation gradient, elastic and plastic.", rest="identity"),
        Attribute("weak", "weak", (), "", "primvars:weak", "weak", "1 where the material is torn, else 0.", "int32"),
        Attribute("plastic_volume_ratio", "Jp", (), "", "primvars:Jp", "Jp", "det of the plastic part.", rest=1.0),
        Attribute("stress", "tau", (6,), "Pa", "primvars:stress", "stress", "Kirchhoff stress xx xy xz yy yz zz."),
        Attribute("stiffness_scale", "s", (), "", "primvars:stiffness_scale", "stiffness", "Multiplier of the stiffness.",
                  rest=1.0),
    )
}


# ---------------------------------------------------------------- values that travel on outer wires
def frozen(array: np.ndarray) -> np.ndarray:
    """Return `array` C-contiguous and read-only."""
    array = np.ascontiguousarray(array)
    array.setflags(write=False)
    return array


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
    """

    law: str
    params: Mapping[str, float]
    density: float
    label: str = ""
    tear_threshold: float | None = None
    recovery_time: float | None = None
    viscosity: float = 0.0


@dataclass(frozen=True)
class Particles:
    """Frozen particles of the outer graph; on a stage's port, the substep domain of the same name.

    Attributes:
        attributes: Columns by attribute name: shape (n, *ATTRIBUTES[name].shape); `position` is float64 [m].
            Names outside the table are carried along untouched (user primvars).
        materials: Materials that the `material` column indexes.
        spacing: Distance of neighbouring particles on a lattice of equal density [m]; grid cells are twice that.
        time: Simulated seconds since the start frame.
    """

    attributes: Mapping[str, np.ndarray]
    materials: tuple[Material, ...] = ()
    spacing: float = 0.01
    time: float = 0.0

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

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(column.nbytes for column in self.attributes.values())

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return JSON-able facts and arrays, as caches and checkpoints store them."""
        materials = [[m.law, dict(m.params), m.density, m.label, m.tear_threshold, m.recovery_time, m.viscosity]
                     for m in self.materials]
        return {"materials": materials, "spacing": self.spacing, "time": self.time}, dict(self.attributes)

    @classmethod
    def from_arrays(cls, facts: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Particles:
        """Return the particles that `to_arrays` described."""
        materials = tuple(Material(*material) for material in facts["materials"])
        return cls(arrays, materials, facts["spacing"], facts["time"])


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
        drops: The copies, in the order of their times; with any of them the emitter is no stream.
    """

    template: Particles
    velocity: Vec3
    start: float = 0.0
    end: float = float("inf")
    drops: tuple[Drop, ...] = ()


@dataclass(frozen=True)
class Collider:
    """A collision body over the frame interval that ends at the cooked frame.

    Attributes:
        name: What messages call it.
        rule: What it does to the relative velocity.
        friction: Coulomb coefficient, used by `CollisionRule.SEPARATE`.
        shape: Posed level sets (`kernels.level_set.PosedLevelSets`): one rigid level set with a motion, or several keyed ones.
        mesh: Mesh to draw for it at this frame, or None.
    """

    name: str
    rule: CollisionRule
    friction: float
    shape: Any
    mesh: Mesh | None = None


@dataclass(frozen=True)
class Mesh:
    """A polygon mesh, counter-clockwise seen from outside.

    Attributes:
        points: Shape (n, 3) [m], float64 or float32.
        counts: Vertices of each face, shape (faces,), int32.
        indices: Point indices, shape (counts.sum(),), int32.
        normals: Point normals, shape (n, 3), or None.
        velocities: Point velocities [m/s], shape (n, 3), or None.
        attributes: Further point attributes by name, shape (n, ...).
    """

    points: np.ndarray
    counts: np.ndarray
    indices: np.ndarray
    normals: np.ndarray | None = None
    velocities: np.ndarray | None = None
    attributes: Mapping[str, np.ndarray] = field(default_factory=dict)


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


def merge_materials(parts: Sequence[Particles]) -> tuple[tuple[Material, ...], list[np.ndarray]]:
    """Return the distinct materials of all parts, and for each part the new index of each of its materials."""
    materials: list[Material] = []
    remaps = [np.array([_index_of(materials, material) for material in part.materials] or [0], np.int32) for part in parts]
    return tuple(materials), remaps


def concatenate(parts: Sequence[Particles]) -> Particles:
    """Join particles; columns missing in a part take the attribute's rest value, ids are renumbered, materials merged."""
    parts = [part for part in parts if part is not None]
    names: list[str] = list(dict.fromkeys(name for part in parts for name in part.attributes))
    if any(part.materials for part in parts) and "material" not in names:
        names.append("material")
    materials, remaps = merge_materials(parts)
    columns: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for part, remap in zip(parts, remaps, strict=True):
        for name in names:
            column = part.attributes.get(name)
            if name == "material":
                column = remap[np.zeros(len(part), np.int32) if column is None else column]
            elif column is None:
                if name not in ATTRIBUTES:
                    like = next(p[name] for p in parts if name in p)
                    column = np.zeros((len(part), *like.shape[1:]), like.dtype)
                else:
                    column = ATTRIBUTES[name].rest_values(len(part))
            columns[name].append(column)
    merged = {name: np.concatenate(column) for name, column in columns.items()} if parts else {"position": np.zeros((0, 3))}
    merged["id"] = np.arange(len(merged["position"]), dtype=np.int64)
    spacing = min((part.spacing for part in parts), default=0.01)
    return Particles(merged, materials, spacing, max((part.time for part in parts), default=0.0))


def _index_of(materials: list[Material], material: Material) -> int:
    if material not in materials:
        materials.append(material)
    return materials.index(material)


