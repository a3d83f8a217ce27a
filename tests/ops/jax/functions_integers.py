"""Op rows of integers and booleans, and of no operands, in JAX. Arrays come as float64."""
import jax
import jax.numpy as jnp
from jax import lax

I32, I64 = jnp.int32, jnp.int64


def of(dtype, f):
    return lambda *arrays: f(*(array.astype(dtype) for array in jnp.broadcast_arrays(*arrays)))


def unless_zero(f, otherwise):
    """What Gradus has instead where an integer is divided by 0."""
    return lambda a, b: jnp.where(b == 0, otherwise(a), f(a, jnp.where(b == 0, 1, b)))


def power(a, b):
    one = jnp.where(jnp.abs(a) == 1, a ** (b % 2), 0)
    return jnp.where(b >= 0, a ** jnp.maximum(b, 0), one)


FUNCTIONS = {
    "bitwise_and": of(I64, jnp.bitwise_and),
    "bitwise_or": of(I64, jnp.bitwise_or),
    "bitwise_xor": of(I64, jnp.bitwise_xor),
    "invert": of(I64, jnp.invert),
    "left_shift": of(I64, lax.shift_left),
    "right_shift": of(I64, lax.shift_right_arithmetic),
    "population_count": of(I64, lax.population_count),
    "logical_and": of(bool, jnp.logical_and),
    "logical_or": of(bool, jnp.logical_or),
    "logical_xor": of(bool, jnp.logical_xor),
    "logical_not": of(bool, jnp.logical_not),
    "divide integers": of(I64, unless_zero(lax.div, jnp.zeros_like)),
    "floor_divide integers": of(I64, unless_zero(jnp.floor_divide, jnp.zeros_like)),
    "mod integers": of(I64, unless_zero(jnp.mod, lambda a: a)),
    "truncatemod of integers": of(I64, unless_zero(lax.rem, lambda a: a)),
    "gcd": of(I64, jnp.gcd),
    "lcm": of(I64, jnp.lcm),
    "integer_pow": of(I64, lambda a, b: power(a, b)),
    "cast to f64": of(jnp.float32, lambda x: x.astype(jnp.float64)),
    "cast integers to u8": of(I64, lambda x: x.astype(jnp.uint8)),
    "bitcast": of(jnp.float32, lambda x: lax.bitcast_convert_type(x, I32)),
    "check_range": of(I64, lambda x: x),
    "one_hot": lambda x: jax.nn.one_hot(x.astype(I64), 10),
    "zero_fraction": lambda x: jnp.mean(x == 0),
    "is_non_decreasing": lambda x: jnp.all(jnp.diff(x.reshape(-1)) >= 0),
    "is_strictly_increasing": lambda x: jnp.all(jnp.diff(x.reshape(-1)) > 0),
    "count_nonzero": lambda x: jnp.count_nonzero(x, -1),
    "argmax, the last index": lambda x: x.shape[-1] - 1 - jnp.argmax(x[..., ::-1], -1),
    "argmin, the last index": lambda x: x.shape[-1] - 1 - jnp.argmin(x[..., ::-1], -1),
    "eye": lambda: jnp.eye(7),
}
for dtype in ("f32", "f64", "i64", "i32", "u8"):
    FUNCTIONS[f"range {dtype}"] = lambda: jnp.arange(100)
