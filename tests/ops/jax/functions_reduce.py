"""Op rows of reductions, and of what goes along an axis, in JAX."""
import jax
import jax.numpy as jnp

AXES = {
    "of the last axis": {"axis": -1},
    "of the first axis": {"axis": 0, "keepdims": True},
    "of separate axes": {"axis": (0, -1)},
    "of everything": {},
}
REDUCTIONS = {
    "reduce_sum": jnp.sum,
    "reduce_mean": jnp.mean,
    "reduce_max": jnp.max,
    "reduce_min": jnp.min,
    "reduce_prod": jnp.prod,
    "reduce_variance": jnp.var,
    "reduce_std": jnp.std,
    "norm": lambda x, **axes: jnp.sqrt(jnp.sum(x * x, **axes)),
    "reduce_any": jnp.any,
    "reduce_all": jnp.all,
    "reduce_logsumexp": lambda x, **axes: jax.scipy.special.logsumexp(x, **axes),
}
ALONG = {
    "softmax": jax.nn.softmax,
    "log_softmax": jax.nn.log_softmax,
    "cumsum": jnp.cumsum,
    "argmax": jnp.argmax,
    "argmin": jnp.argmin,
}
FUNCTIONS = {}
for name, f in REDUCTIONS.items():
    for what, axes in AXES.items():
        FUNCTIONS[f"{name} {what}"] = lambda x, f=f, axes=axes: f(x, **axes)
for name, f in ALONG.items():
    FUNCTIONS[f"{name} along the last axis"] = lambda x, f=f: f(x, axis=-1)
    FUNCTIONS[f"{name} along the first axis"] = lambda x, f=f: f(x, axis=0)
