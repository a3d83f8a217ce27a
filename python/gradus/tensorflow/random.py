"""tf.random: random numbers by the global seed, by the seed of a call, and by stateless functions."""
from .. import _native
from .._native import random as _random
from ._seeds import begin, drawn, key
from ._tables import fill
from .generators import Generator, get_global_generator, set_global_generator  # noqa: F401

TABLE = """
stateless_normal(shape, seed, mean=0.0, stddev=1.0, dtype="float32") = random.stateless_normal(shape, seed, mean, stddev, dtype)
stateless_truncated_normal(shape, seed, mean=0.0, stddev=1.0, dtype="float32") = random.stateless_truncated_normal(shape, seed, mean, stddev, dtype)
stateless_gamma(shape, seed, alpha, beta=None, dtype="float32") = random.stateless_gamma(shape, seed, alpha, beta, dtype)
stateless_categorical(logits, num_samples, seed, dtype="int64") = random.stateless_categorical(logits, num_samples, seed, dtype)
"""
fill(globals(), TABLE)


def set_seed(seed):
    """Sets the global seed."""
    begin(seed)


def normal(shape, mean=0.0, stddev=1.0, dtype="float32", seed=None, name=None):
    """Normally distributed numbers; with a seed, the next ones of its sequence."""
    return drawn("normal", seed, shape, mean=mean, stddev=stddev, dtype=dtype)


def truncated_normal(shape, mean=0.0, stddev=1.0, dtype="float32", seed=None, name=None):
    """Normally distributed numbers within two standard deviations of the mean; with a seed, the next ones of its sequence."""
    return drawn("truncated_normal", seed, shape, mean=mean, stddev=stddev, dtype=dtype)


def categorical(logits, num_samples, dtype=None, seed=None, name=None):
    """Classes drawn by the logits of each row, int64 [rows, num_samples]; with a seed, the next ones of its sequence."""
    return drawn("categorical", seed, logits, num_samples, dtype="int64" if dtype is None else dtype)


def shuffle(value, seed=None, name=None):
    """The rows in a random order; with a seed, by the next numbers of its sequence."""
    return drawn("shuffle", seed, value)


def _bounds(name, dtype, maxval):
    """True for an integer dtype; ValueError if it has no maxval."""
    is_integer = "int" in str(dtype)
    if is_integer and maxval is None:
        raise ValueError(f"{name}: integers need maxval")
    return is_integer


def uniform(shape, minval=0, maxval=None, dtype="float32", seed=None, name=None):
    """Uniform numbers in [minval, maxval); maxval is 1 by default. ValueError for integers without maxval."""
    if _bounds("uniform", dtype, maxval):
        return drawn("integers", seed, shape, low=minval, high=maxval, dtype=dtype)
    return drawn("uniform", seed, shape, low=minval, high=1 if maxval is None else maxval, dtype=dtype)


def stateless_uniform(shape, seed, minval=0, maxval=None, dtype="float32", name=None):
    """uniform() by a seed of two numbers: the same arguments give the same numbers."""
    if _bounds("stateless_uniform", dtype, maxval):
        return _random.stateless_integers(shape, seed, low=minval, high=maxval, dtype=dtype)
    return _random.stateless_uniform(shape, seed, low=minval, high=1 if maxval is None else maxval, dtype=dtype)


def gamma(shape, alpha, beta=None, dtype="float32", seed=None, name=None):
    """Numbers of gamma distributions, shape + the shape of alpha and beta."""
    shape = _native._sizes(shape)
    if beta is not None:  # a draw for each of its elements
        beta = _native.ops.cast(beta, dtype)
        alpha = _native.ops.cast(alpha, dtype) + _native.ops.zeros_like(beta)
    if seed is None:
        made = _random.gamma(shape, alpha)
    else:
        alpha = _native.ops.cast(alpha, dtype)
        made = _random.stateless_gamma([*shape, *alpha.shape], key(seed), alpha)
    made = made if beta is None else made / beta
    return _native.ops.cast(made, dtype)
