"""Op rows of incomplete functions in JAX, by their power series: JAX's own have no derivatives of second order."""
import jax.numpy as jnp
from jax.scipy import special


def igamma(a, x):
    a, x = jnp.broadcast_arrays(a, x)
    n = jnp.arange(1, 150).reshape((-1,) + (1,) * a.ndim)
    series = 1 + jnp.sum(jnp.cumprod(x / (a + n), 0), 0)
    return jnp.exp(a * jnp.log(x) - x - special.gammaln(a + 1)) * series


def betainc(a, b, x):
    a, b, x = jnp.broadcast_arrays(a, b, x)
    n = jnp.arange(0, 700).reshape((-1,) + (1,) * a.ndim)
    series = 1 + jnp.sum(jnp.cumprod(x * (a + b + n) / (a + 1 + n), 0), 0)
    beta = special.gammaln(a) + special.gammaln(b) - special.gammaln(a + b)
    return jnp.exp(a * jnp.log(x) + b * jnp.log1p(-x) - beta) / a * series


def zeta(s, q):
    s, q = jnp.broadcast_arrays(s, q)
    n = jnp.arange(0, 60).reshape((-1,) + (1,) * s.ndim)
    w = q + 60
    rest = w ** (1 - s) / (s - 1) + w ** -s * (0.5 + s / (12 * w) - s * (s + 1) * (s + 2) / (720 * w ** 3))
    rest += s * (s + 1) * (s + 2) * (s + 3) * (s + 4) * w ** (-s - 5) / 30240
    return jnp.sum((q + n) ** -s, 0) + rest


FUNCTIONS = {
    "betainc": betainc,
    "igamma": igamma,
    "igamma at halves": lambda a, x: igamma(jnp.ceil(2 * a) / 2, x),
    "igammac": lambda a, x: 1 - igamma(a, x),
    "polygamma of a tensor": lambda a, x: special.polygamma(2, x) + 0 * a,
    "zeta": zeta,
}
