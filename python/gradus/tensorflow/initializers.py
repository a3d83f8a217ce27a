"""First values of Variables, as functions of a shape."""
import numpy as np

from .. import ops, random
from .dtypes import as_dtype
from .tensors import constant

__all__ = ["constant_initializer", "ones_initializer", "random_normal_initializer", "random_uniform_initializer",
           "zeros_initializer"]


class zeros_initializer:
    """Zeros."""

    def __call__(self, shape, dtype="float32", **kwargs):
        return ops.zeros(shape, as_dtype(dtype))


class ones_initializer:
    """Ones."""

    def __call__(self, shape, dtype="float32", **kwargs):
        return ops.ones(shape, as_dtype(dtype))


class constant_initializer:
    """One number, or numbers in the requested shape."""

    def __init__(self, value=0, support_partition=False):
        self.value = value

    def __call__(self, shape, dtype=None, **kwargs):
        value = np.asarray(self.value)
        made = constant(value, as_dtype("float32" if dtype is None else dtype))
        return ops.broadcast_to(made, shape) if value.ndim == 0 else ops.reshape(made, shape)


class random_uniform_initializer:
    """Uniform numbers in [minval, maxval)."""

    def __init__(self, minval=-0.05, maxval=0.05, seed=None):
        self.minval, self.maxval, self.seed = minval, maxval, seed

    def __call__(self, shape, dtype="float32", **kwargs):
        return random.uniform(shape, low=self.minval, high=self.maxval, dtype=as_dtype(dtype), seed=self.seed)


class random_normal_initializer:
    """Normally distributed numbers."""

    def __init__(self, mean=0.0, stddev=0.05, seed=None):
        self.mean, self.stddev, self.seed = mean, stddev, seed

    def __call__(self, shape, dtype="float32", **kwargs):
        return random.normal(shape, mean=self.mean, stddev=self.stddev, dtype=as_dtype(dtype), seed=self.seed)
