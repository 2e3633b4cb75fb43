"""The declaration of melting under the projection."""

from mpm_nodes.physics.contract import Physics
from mpm_nodes.physics.heat.materials import melting_rubber

PHYSICS = Physics(
    __package__, needs=("heat", "projection"), compiled_for=dict.fromkeys(("melting", "auto_melting"), melting_rubber)
)
