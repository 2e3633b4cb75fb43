"""What each sample must show, beside the figures that all have: a function of its cooked shot."""

from __future__ import annotations

from collections.abc import Callable

from mpm_nodes_samples.shots.shot import Figure, Shot
from tests.reproduction import (
    beads,
    bodies,
    candles,
    directed,
    foam,
    honey,
    melting,
    phases,
    propelled,
    surfaces,
    tension,
    viscoelastic,
)

FIGURES: dict[str, Callable[[Shot], list[Figure]]] = {
    figures.__name__: figures
    for figures in (
        foam.shaving_foam,
        foam.uniform_smore,
        foam.toasted_smore,
        foam.pie,
        foam.spheres,
        foam.pachinko,
        foam.tendril,
        foam.threads,
        viscoelastic.twisted_sponge,
        viscoelastic.sponge_bullet,
        viscoelastic.foam_stream,
        viscoelastic.toothpaste,
        viscoelastic.viennetta,
        viscoelastic.scored_pie,
        melting.pool_at_rest,
        melting.candied_apple,
        melting.ice_in_water,
        melting.letters,
        phases.hot_air,
        phases.hot_stream,
        phases.marshmallow_on_plate,
        phases.butter_on_pan,
        phases.wax,
        phases.lava,
        phases.caramel,
        tension.ellipse,
        tension.drop_impacts,
        tension.drops_on_ramps,
        tension.heated_cavity,
        surfaces.drops_on_plates,
        surfaces.soap_on_water,
        candles.candles,
        candles.candle_letters,
        propelled.tears_of_wine,
        propelled.metal_drop,
        beads.beads_on_string,
        honey.honey,
        directed.footprints,
        directed.dough_on_step,
        bodies.broken_chocolate,
        bodies.ball_on_jelly,
        bodies.floating_bodies,
        bodies.stirred_batter,
    )
}
"""By the name of the sample."""
