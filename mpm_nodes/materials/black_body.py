"""What glows by itself: the light of a black body, from its temperature.

| symbol | meaning | unit |
|---|---|---|
| T | temperature | K |
| B | spectral radiance, 2 h c^2 / (l^5 (exp(h c / (l k T)) - 1)) (Planck) | W/(m^3 sr) |
| X, Y, Z | 683 lm/W times the integrals of B with the CIE 1931 colour-matching functions; Y is the luminance | cd/m^2 |

The colour-matching functions are the sums of Gaussians of Wyman 2013 (eq. 4), which lie within
1 % of their peaks of the tables. Colours are linear sRGB (IEC 61966-2-1); what lies outside of it, as all that glows below 1900 K
does, is clipped at 0 and keeps its luminance.
"""

from __future__ import annotations

import numpy as np

__all__ = ["LUMINANCE_FIT", "WHITE", "emitted", "luminance_fit", "xyz"]

WHITE = 2000.0
"""Luminance that a picture shows as white [cd/m^2]: dusk. A sheet of paper has 20,000 in full sun, a room's wall 50."""
VISIBLE = 700.0
"""Temperature below which nothing glows that an eye would see, K."""
_PLANCK, _LIGHT, _BOLTZMANN = 6.62607015e-34, 299792458.0, 1.380649e-23
_LUMENS = 683.002
_LOBES = (
    ((1.056, 599.8, 37.9, 31.0), (0.362, 442.0, 16.0, 26.7), (-0.065, 501.1, 20.4, 26.2)),
    ((0.821, 568.8, 46.9, 40.5), (0.286, 530.9, 16.3, 31.1)),
    ((1.217, 437.0, 11.8, 36.0), (0.681, 459.0, 26.0, 13.8)),
)
"""Height, centre, and widths below and above it [nm] of the Gaussians of x, y and z."""
_TO_RGB = np.array([[3.2404542, -1.5371385, -0.4985314], [-0.9692660, 1.8760108, 0.0415560], [0.0556434, -0.2040259, 1.0572252]])
_LUMA = np.array([0.2126729, 0.7151522, 0.0721750])
_TABLE = np.geomspace(VISIBLE, 20000.0, 512)


def xyz(temperature: np.ndarray) -> np.ndarray:
    """Return X, Y and Z of black bodies, shape (n, 3) [cd/m^2].

    Args:
        temperature: Shape (n,) [K], > 0.
    """
    metres = np.arange(380.0, 831.0, 5.0) * 1e-9
    exponent = _PLANCK * _LIGHT / (metres * _BOLTZMANN * np.asarray(temperature, float)[:, None])
    radiance = 2.0 * _PLANCK * _LIGHT**2 / metres**5 * np.exp(-exponent) / -np.expm1(-exponent)
    matching = np.array([sum(_lobe(1e9 * metres, *lobe) for lobe in lobes) for lobes in _LOBES])
    return _LUMENS * 5e-9 * radiance @ matching.T


def emitted(temperature: np.ndarray, white: float = WHITE) -> np.ndarray:
    """Return the linear colours of what glows, shape (n, 3), float32; 1 is as bright as white.

    Args:
        temperature: Shape (n,) [K].
        white: Luminance that is shown as white [cd/m^2]; 0: nothing glows.
    """
    T = np.nan_to_num(np.asarray(temperature, float), nan=0.0, posinf=_TABLE[-1])
    if white <= 0.0 or not len(T) or T.max() < VISIBLE:
        return np.zeros((len(T), 3), np.float32)
    # by logarithm over 1 / T, in which Planck's law is nearly straight
    known = _clipped(xyz(_TABLE))
    place = -1.0 / np.clip(T, _TABLE[0], _TABLE[-1])
    found = [np.exp(np.interp(place, -1.0 / _TABLE, np.log(np.maximum(column, 1e-30)))) for column in known.T]
    return np.where((T < VISIBLE)[:, None], 0.0, np.stack(found, axis=1) / white).astype(np.float32)


LUMINANCE_FIT = (14.6335, 22277.2, 1.25410)
"""a, b and c of `luminance_fit`: least deviation of ln Y from 800 to 3000 K, within 3 %."""


def luminance_fit(temperature: np.ndarray) -> np.ndarray:
    """Return the luminance exp(a - b / T) T^c [cd/m^2], T in K, for shaders that have no tables."""
    a, b, c = LUMINANCE_FIT
    T = np.asarray(temperature, float)
    return np.exp(a - b / T) * T**c


def _lobe(nanometres: np.ndarray, height: float, centre: float, below: float, above: float) -> np.ndarray:
    width = np.where(nanometres < centre, below, above)
    return height * np.exp(-0.5 * ((nanometres - centre) / width) ** 2)


def _clipped(tristimulus: np.ndarray) -> np.ndarray:
    """Return linear sRGB without negative parts, at the same luminance."""
    rgb = np.maximum(tristimulus @ _TO_RGB.T, 0.0)
    return rgb * (tristimulus[:, 1] / np.maximum(rgb @ _LUMA, 1e-300))[:, None]
