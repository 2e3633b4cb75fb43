"""What artists read on knobs: one declaration for every host. Graph files and messages keep the knobs' own names."""

from __future__ import annotations

__all__ = ["ADVANCED", "LABELS", "label_of", "title"]

LABELS: dict[str, tuple[str, str]] = {
    "adhesion": ("Stickiness", "Adhesion"),
    "alg11_expansion": ("Stop Expansion", "Expansion of algorithm 11"),
    "beta": ("Implicit Share", "beta"),
    "breaking_force": ("Breaks At", "Breaking force"),
    "bulk_modulus": ("Volume Stiffness", "Bulk modulus"),
    "cfl": ("Cells a Substep", "Courant number"),
    "cohesion": ("Stickiness", "Cohesion"),
    "consistency": ("Thickness", "Consistency"),
    "critical_compression": ("Crushes At", "Critical compression"),
    "critical_stretch": ("Breaks At", "Critical stretch"),
    "dt_max": ("Longest Substep", "Largest dt"),
    "dt_min": ("Shortest Substep", "Smallest dt"),
    "elastic_cfl": ("Wave Cells a Substep", "Courant number of elastic waves"),
    "flow_index": ("Thickens When Stirred", "Flow index"),
    "fps": ("Frame Rate", "Frames a second"),
    "friction_angle": ("Steepest Slope", "Angle of inner friction"),
    "half": ("16-Bit Volumes", "Half precision"),
    "held": ("Holds Temperature", "Dirichlet condition"),
    "krylov": ("Linear Solver", "Krylov method"),
    "krylov_iterations": ("Linear Iterations", "Krylov iterations"),
    "krylov_tolerance": ("Linear Tolerance", "Tolerance of the Krylov method"),
    "lame_parameter": ("Volume Stiffness", "First Lamé parameter"),
    "most": ("Most a Frame", "Greatest number"),
    "of_laws": ("Moduli of Laws", "Bulk moduli of the laws"),
    "poisson_ratio": ("Sideways Bulge", "Poisson's ratio"),
    "recovery_time": ("Heals Within", "Recovery time"),
    "relaxation_time": ("Springs Back Within", "Relaxation time"),
    "restitution": ("Bounciness", "Coefficient of restitution"),
    "shear_modulus": ("Stiffness", "Shear modulus"),
    "tear_threshold": ("Tears At", "Tear threshold"),
    "thickness": ("Sheet Thickness", "Thickness"),
    "uv": ("UV Map", "Primvar of UVs"),
    "viscosity": ("Thickness", "Dynamic viscosity"),
    "yield_stress": ("Holds Shape Up To", "Yield stress"),
    "youngs_modulus": ("Stiffness", "Young's modulus"),
}
"""By the knob's name: what artists read, and the field's term, with which its help begins."""

ADVANCED = frozenset(
    (
        "adaptivity",
        "anisotropy",
        "device",
        "dt_max",
        "dt_min",
        "exact_convection",
        "half",
        "largest",
        "margin",
        "position_precision",
        "precision",
        "resample",
        "seeding",
        "substeps",
    )
)
"""Knobs of the graph's nodes that set how it is computed, and not what happens: hosts fold them away."""

SPELLED = {"apic": "APIC", "flip": "FLIP", "id": "ID", "obj": "OBJ", "ply": "PLY", "uv": "UV"}
"""Words of names that labels spell in another way."""


def title(name: str) -> str:
    """Return a name as a label: "wall_friction" becomes "Wall Friction"."""
    return " ".join(SPELLED.get(word, word[:1].upper() + word[1:]) for word in name.split("_"))


def label_of(name: str) -> str:
    """Return what artists read for a knob's name."""
    return LABELS[name][0] if name in LABELS else title(name)
