"""Writes special_values.json: SciPy's values of the special functions, in float64, at points of their domains.

    python special_values.py    (SciPy 1.17)
"""
import json
import pathlib

import numpy as np
from scipy import special

LINE = np.linspace(-3, 3, 13)
POSITIVE = np.linspace(0.25, 6, 12)
UNIT = np.linspace(0.05, 0.95, 10)
FUNCTIONS = {
    "erf": (special.erf, LINE), "erfc": (special.erfc, LINE), "erfinv": (special.erfinv, UNIT),
    "erfcinv": (special.erfcinv, UNIT), "ndtri": (special.ndtri, UNIT), "lgamma": (special.gammaln, POSITIVE),
    "digamma": (special.digamma, POSITIVE), "bessel_i0": (special.i0, LINE), "bessel_i0e": (special.i0e, LINE),
    "bessel_i1": (special.i1, LINE), "bessel_i1e": (special.i1e, LINE), "bessel_j0": (special.j0, LINE),
    "bessel_j1": (special.j1, LINE), "bessel_y0": (special.y0, POSITIVE), "bessel_y1": (special.y1, POSITIVE),
    "bessel_k0": (special.k0, POSITIVE), "bessel_k0e": (special.k0e, POSITIVE), "bessel_k1": (special.k1, POSITIVE),
    "bessel_k1e": (special.k1e, POSITIVE), "fresnel_cos": (lambda x: special.fresnel(x)[1], LINE),
    "fresnel_sin": (lambda x: special.fresnel(x)[0], LINE), "expint": (special.expi, POSITIVE),
    "spence": (special.spence, POSITIVE), "dawsn": (special.dawsn, LINE),
    "igamma": (special.gammainc, POSITIVE, POSITIVE[::-1]), "igammac": (special.gammaincc, POSITIVE, POSITIVE[::-1]),
    "zeta": (special.zeta, POSITIVE + 1.5, POSITIVE[::-1]),
    "polygamma": (lambda n, x: special.polygamma(n.astype(int), x), np.floor(POSITIVE), POSITIVE[::-1]),
    "betainc": (special.betainc, POSITIVE[:10], POSITIVE[9::-1], UNIT),
}


def main():
    rows = {name: {"operands": [list(o) for o in operands], "value": list(function(*operands))}
            for name, (function, *operands) in FUNCTIONS.items()}
    text = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
    pathlib.Path(__file__).with_suffix(".json").write_text("{\n" + text + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
