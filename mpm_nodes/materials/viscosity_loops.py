"""Template of the loop that adds a material's viscosity to the stress of explicit steps (see `codegen` for the layout).

A loop of its own: laws run at full speed where there is none. The material's viscosity is the number behind the law's own
coefficients; callers who give only those have none.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["viscosity_call", "viscosity_source"]

_LOOP = '''
@part
def add_viscosity({state_names}, velocity_gradient, tau, tau_stride, tau_shift, stride, start, end, coeffs):
    for i in range(start, end, 16):
        {load_state}
        L = tearing.load_matrix(velocity_gradient, stride, i)
        J = {volume_ratio}
        p = mat3.pack(newtonian_viscosity.stress_of_flow(J, L, broadcast(x, coeffs[{viscosity}])))
        {add_stress}
'''


def viscosity_call(pieces: Mapping[str, str], indent: int = 4) -> str:
    """Return the lines that call the loop where the material has a viscosity, after `stress_in` with the same names."""
    k, names = pieces["viscosity"], pieces["state_names"]
    return (f"if coeffs.size > {k} and coeffs[{k}] > 0.0:\n{' ' * indent}    add_viscosity({names}, velocity_gradient, tau, "
            "tau_stride, tau_shift, stride, start, end, coeffs)")


def viscosity_source(pieces: Mapping[str, str]) -> str:
    """Return the source of the loop.

    Args:
        pieces: What `codegen` knows of the law; "state_names", "load_state", "volume_ratio" and "viscosity", the index
            among the coefficients, are used.
    """
    rows = [f"tau_{row} = {row} * tau_stride + tau_shift + i" for row in range(6)]
    rows += [f"store_first(tau, tau_{row}, load(tau, tau_{row}) + p[{row}], end - i)" for row in range(6)]
    return _LOOP.format(**pieces, add_stress=("\n" + 8 * " ").join(rows))
