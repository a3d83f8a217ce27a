"""Seeds of calls. In TensorFlow `seed=1` names a sequence: each call takes its next numbers, and tf.random.set_seed restarts
it. Here a call takes a key that follows from its seed and from the number of earlier uses of that seed."""
import threading

from .. import _native
from .._native import random as _random

_lock = threading.Lock()
_counts = {}
_global = [0]


def begin(seed):
    """Sets the global seed; the sequences of all seeds of calls restart."""
    with _lock:
        _native.set_seed(seed)
        _global[0] = int(seed)
        _counts.clear()


def positions():
    """The global seed, and the number of uses of each seed, for checkpoints."""
    with _lock:
        return [_global[0], sorted(_counts.items())]


def go_to(found):
    """Continues from the state that positions() returned."""
    with _lock:
        _global[0] = found[0]
        _counts.clear()
        _counts.update((seed, count) for seed, count in found[1])


def key(seed):
    """The seed of a stateless op for the next numbers of this seed. In a traced function, which is called again, they
    follow from the global seed, whose key the program takes at each call."""
    seed = int(seed)
    if _native._is_traced():
        return _random.stateless_fold_in(_random.integers([2], low=0, high=2**31 - 1, dtype="int64"), seed)
    with _lock:
        count = _counts.get(seed, 0)
        _counts[seed] = count + 1
        first = _global[0] % 2**63
    return _random.stateless_fold_in(_native.constant([first, count], _native.int64), seed % 2**63)


def drawn(name, seed, *args, **options):
    """gradus.random.<name>, by the global seed or as the next numbers of a seed."""
    if seed is None:
        return getattr(_random, name)(*args, **options)
    if name in ("shuffle", "categorical"):
        return getattr(_random, f"stateless_{name}")(*args, key(seed), **options)
    return getattr(_random, f"stateless_{name}")(args[0], key(seed), *args[1:], **options)
