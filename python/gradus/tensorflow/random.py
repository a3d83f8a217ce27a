"""tf.random: random numbers by the global seed, by seeds of a call, and by the stateless functions."""
from .. import _native
from .._native import random as _random
from ._tables import fill
from .generators import Generator, get_global_generator, set_global_generator  # noqa: F401

TABLE = """
stateless_normal(shape, seed, mean=0.0, stddev=1.0, dtype="float32") = random.stateless_normal(shape, seed, mean, stddev, dtype)
stateless_truncated_normal(shape, seed, mean=0.0, stddev=1.0, dtype="float32") = random.stateless_truncated_normal(shape, seed, mean, stddev, dtype)
stateless_gamma(shape, seed, alpha, beta=None, dtype="float32") = random.stateless_gamma(shape, seed, alpha, beta, dtype)
stateless_categorical(logits, num_samples, seed, dtype="int64") = random.stateless_categorical(logits, num_samples, seed, dtype)
normal(shape, mean=0.0, stddev=1.0, dtype="float32", seed=None) = random.normal(shape, mean, stddev, dtype, seed)
truncated_normal(shape, mean=0.0, stddev=1.0, dtype="float32", seed=None) = random.truncated_normal(shape, mean, stddev, dtype, seed)
categorical(logits, num_samples, dtype=None, seed=None) = random.categorical(logits, num_samples, dtype, seed)
shuffle(value, seed=None) = random.shuffle(x, seed)
"""
fill(globals(), TABLE)


def set_seed(seed):
    """Sets the global seed."""
    _native.set_seed(seed)


def _bounds(name, dtype, maxval):
    """True for integers, which need a bound."""
    is_integer = "int" in str(dtype)
    if is_integer and maxval is None:
        raise ValueError(f"{name}: integers need maxval")
    return is_integer


def uniform(shape, minval=0, maxval=None, dtype="float32", seed=None, name=None):
    """Numbers of [minval, maxval), uniform. Integers need maxval."""
    if _bounds("uniform", dtype, maxval):
        return _random.integers(shape, low=minval, high=maxval, dtype=dtype, seed=seed)
    return _random.uniform(shape, low=minval, high=1 if maxval is None else maxval, dtype=dtype, seed=seed)


def stateless_uniform(shape, seed, minval=0, maxval=None, dtype="float32", name=None):
    """uniform() by a seed of two numbers: the same arguments give the same numbers."""
    if _bounds("stateless_uniform", dtype, maxval):
        return _random.stateless_integers(shape, seed, low=minval, high=maxval, dtype=dtype)
    return _random.stateless_uniform(shape, seed, low=minval, high=1 if maxval is None else maxval, dtype=dtype)


def gamma(shape, alpha, beta=None, dtype="float32", seed=None, name=None):
    """Numbers of gamma distributions, shape + the shape of alpha and beta."""
    made = _random.gamma([int(n) for n in shape], alpha, seed=seed)
    made = made if beta is None else made / beta
    return _native.ops.cast(made, dtype)
