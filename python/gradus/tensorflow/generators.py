"""tf.random.Generator: random numbers with a state of their own, a Variable, which compiled functions advance, too."""
import os
import threading

from .. import Variable, int64, ops
from .._native import random as _random

_lock = threading.Lock()


class Generator:
    """Random numbers from a key and a counter. The same seed gives the same numbers in the same order."""

    def __init__(self, copy_from=None, state=None, alg=None):
        if copy_from is not None:
            state = copy_from.state.value()
        if state is None:
            raise ValueError("Generator: made by Generator.from_seed(n) or from_non_deterministic_state()")
        self.state = Variable(ops.cast(state, int64), "generator_state", False)

    @classmethod
    def from_seed(cls, seed, alg=None):
        """A generator whose numbers follow from one integer."""
        return cls(state=[int(seed), 0])

    @classmethod
    def from_state(cls, state, alg=None):
        """A generator that continues from `generator.state`."""
        return cls(state=state.value() if isinstance(state, Variable) else state)

    @classmethod
    def from_non_deterministic_state(cls, alg=None):
        """A generator that the operating system seeds."""
        return cls.from_seed(int.from_bytes(os.urandom(4), "little") >> 1)

    def reset_from_seed(self, seed):
        """Restarts from this seed."""
        self.state.assign([int(seed), 0])

    def reset(self, state):
        """Continues from another state."""
        self.state.assign(state.value() if isinstance(state, Variable) else state)

    def _seed(self):
        with _lock:  # two threads draw different numbers
            seed = self.state.value()
            self.state.assign_add([0, 1])
        return seed

    def make_seeds(self, count=1):
        """int64 [2, count], each column the seed of a stateless op."""
        return _random.stateless_integers([2, count], self._seed(), low=0, high=2**31 - 1, dtype=int64)

    def split(self, count=1):
        """`count` new generators with independent numbers."""
        seeds = self.make_seeds(count)
        return [Generator(state=[seeds[0, i], 0]) for i in range(count)]

    def normal(self, shape, mean=0.0, stddev=1.0, dtype="float32", name=None):
        """Normally distributed numbers of this shape."""
        return _random.stateless_normal(shape, self._seed(), mean=mean, stddev=stddev, dtype=dtype)

    def truncated_normal(self, shape, mean=0.0, stddev=1.0, dtype="float32", name=None):
        """Normally distributed numbers within two standard deviations of the mean."""
        return _random.stateless_truncated_normal(shape, self._seed(), mean=mean, stddev=stddev, dtype=dtype)

    def uniform(self, shape, minval=0, maxval=None, dtype="float32", name=None):
        """Uniform numbers in [minval, maxval); maxval is 1 by default. ValueError for integers without maxval."""
        if "int" in str(dtype):
            if maxval is None:
                raise ValueError("uniform: integers need maxval")
            return _random.stateless_integers(shape, self._seed(), low=minval, high=maxval, dtype=dtype)
        return _random.stateless_uniform(shape, self._seed(), low=minval, high=1 if maxval is None else maxval, dtype=dtype)


_global = []


def get_global_generator():
    """The generator of the process."""
    if not _global:
        _global.append(Generator.from_non_deterministic_state())
    return _global[0]


def set_global_generator(generator):
    """Makes this one the generator of the process."""
    _global[:] = [generator]
