"""The ledger of a bounce."""

import bounce_energy
import pytest


@pytest.mark.parametrize("preset", ["explicit_apic", "implicit_apic"])
def test_what_stages_lose_is_what_is_lost(preset):
    """The columns sum to the energy that is gone, and a transfer never makes any."""
    _, speed, swings, *shares, lost = bounce_energy.ledger(preset, 3.0)
    assert sum(shares) == pytest.approx(lost, abs=1e-9)
    assert speed**2 + swings == pytest.approx(1.0 - lost, abs=1e-9)
    assert shares[0] > 0.0 and shares[3] > 0.0
