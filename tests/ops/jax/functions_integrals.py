"""JAX's values of special functions that JAX has not, or not with gradients: by the integrals that define them, in
Gauss's and the trapezoidal rule, through which JAX differentiates.
"""
import jax.numpy as jnp
import numpy as np


def integral(f, low, high, count=200):
    """Of f, a function of an array with one dimension more, from low to high."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    at, size = (high - low) / 2 * nodes + (high + low) / 2, (high - low) / 2
    return jnp.sum(f(at) * (weights * size), -1)


def bessel_j(n):
    angles = np.arange(64) * (2 * np.pi / 64)
    return lambda x: jnp.mean(jnp.cos(n * angles - x[..., None] * np.sin(angles)), -1)


def bessel_y(n):
    def f(x):
        x = x[..., None]
        wave = integral(lambda t: jnp.sin(x * np.sin(t) - n * t), 0, np.pi)
        return (wave - integral(lambda t: (np.exp(n * t) + (-1) ** n * np.exp(-n * t)) * jnp.exp(-x * np.sinh(t)), 0, 6)) / np.pi
    return f


def bessel_k(n, scaled=0):
    return lambda x: integral(lambda t: jnp.exp(-x[..., None] * (np.cosh(t) - scaled)) * np.cosh(n * t), 0, 6)


def spence(x):
    return -(x - 1) * integral(lambda s: jnp.log1p((x[..., None] - 1) * s) / ((x[..., None] - 1) * s), 0, 1)


FUNCTIONS = {
    "bessel_j0": bessel_j(0),
    "bessel_j1": bessel_j(1),
    "bessel_y0": bessel_y(0),
    "bessel_y1": bessel_y(1),
    "bessel_k0": bessel_k(0),
    "bessel_k0e": bessel_k(0, scaled=1),
    "bessel_k1": bessel_k(1),
    "bessel_k1e": bessel_k(1, scaled=1),
    "fresnel_cos": lambda x: x * integral(lambda s: jnp.cos(np.pi / 2 * (x[..., None] * s) ** 2), 0, 1),
    "fresnel_sin": lambda x: x * integral(lambda s: jnp.sin(np.pi / 2 * (x[..., None] * s) ** 2), 0, 1),
    "expint": lambda x: np.euler_gamma + jnp.log(x) + integral(lambda s: jnp.expm1(x[..., None] * s) / s, 0, 1),
    "spence": spence,
    "dawsn": lambda x: x * integral(lambda s: jnp.exp(x[..., None] ** 2 * (s * s - 1)), 0, 1),
}
