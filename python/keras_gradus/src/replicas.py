"""Steps whose batches are divided among devices or processes: keras.distribution.DataParallel, and strategies in whose scope
a model was made.

The model runs on each shard of a batch. Its outputs are put together again, so that losses and metrics, whatever they
compute, are those of the whole batch; gradients are, too. A batch has SHARDS shards on any number of replicas, up to that
many, which gives them the same bits.
"""
import functools
import threading

import gradus
from gradus import _native, ops
from gradus.tensorflow import distribute
from keras.src import tree

from keras_gradus.src.distribution_lib import num_processes
from keras_gradus.src.scopes import attributes

SHARDS = 8


class _Here(threading.local):
    rows = None  # the numbers of the rows of the shard, while a divided step is traced
    count = None  # the number of rows of the whole batch
    sees_whole = False  # True while values are computed of the whole batch, the same ones on all shards


_here = _Here()
_known = {}  # strategies by their replicas: processes meet once


# ---- within a step

def is_divided():
    """True while a step runs on shards."""
    return _here.rows is not None


def sees_shard():
    """True while a step runs on shards and values are those of a shard."""
    return is_divided() and not _here.sees_whole


def on_whole_batch():
    """Within, losses and metrics are computed of the whole batch: what they add to a state counts once."""
    return attributes(_here, sees_whole=True)


def first_row():
    """The number of the first row of the shard, i64[]."""
    return ops.gather(_here.rows, 0)


def row_count(x):
    """The number of rows of the whole batch, of which x is the nest of a shard's tensors: a number, or a tensor."""
    count = next(leaf for leaf in tree.flatten(x) if leaf is not None).shape[0]
    return ops.all_reduce_sum(_own_count()) if is_divided() else count


def _own_count():
    return ops.reduce_sum(ops.cast(ops.ones_like(_here.rows), "float32"))


def whole(nest):
    """The tensors of all shards, with what Keras has noted on them. Outside of a divided step the nest as it is."""
    if not is_divided():
        return nest

    def gathered(leaf):
        if leaf is None or not getattr(leaf, "ndim", 0):
            return leaf
        found = ops.all_gather(leaf)
        for noted in ("_keras_mask", "_keras_logits"):
            if getattr(leaf, noted, None) is not None:
                setattr(found, noted, ops.all_gather(getattr(leaf, noted)))
        return found
    return tree.map_structure(gathered, nest)


def completed(nest):
    """As whole, for a nest of which tensors may be whole already: a tensor with the rows of the shard is not."""
    if not is_divided() or _here.rows.shape[0] == _here.count:
        return nest
    return tree.map_structure(
        lambda leaf: whole(leaf) if getattr(leaf, "ndim", 0) and leaf.shape[0] == _here.rows.shape[0] else leaf, nest)


def _of_whole_batch(method):
    """A method of Keras that, in a step on shards, gets what all shards give it and runs on the whole batch. Where an argument
    differs from shard to shard but has no rows, such as a sum over them, the method runs on each shard."""
    @functools.wraps(method)
    def of_whole_batch(self, *args, **kwargs):
        if not sees_shard():
            return method(self, *args, **kwargs)
        given = (args, kwargs)
        counts = {leaf.shape[0] if leaf.ndim else None for leaf in tree.flatten(given) if getattr(leaf, "_varies", False)}
        if any(count is None or count % _here.rows.shape[0] for count in counts):
            return method(self, *args, **kwargs)
        args, kwargs = tree.map_structure(
            lambda leaf: whole(leaf) if getattr(leaf, "ndim", 0) and leaf.shape[0] in counts else leaf, given)
        with on_whole_batch():
            return method(self, *args, **kwargs)
    of_whole_batch.runs_on_whole_batch = True
    return of_whole_batch


def _let_see_whole_batches():
    """Has Keras's losses and metrics, the program's own, too, compute of the whole batch when a step on shards calls them: the
    mean of a loss is that of all rows, so that gradients, which add up over the shards, are those of the batch, and what a
    metric assigns to its state is what it would be on one device."""
    from keras.src.losses.loss import Loss
    from keras.src.metrics.metric import Metric
    classes = [(Loss, "__call__")]
    found = [Metric]
    for each in found:
        found += each.__subclasses__()
        classes += [(each, "update_state"), (each, "reset_state")]
    for each, name in classes:
        method = vars(each).get(name)
        if method is not None and not hasattr(method, "runs_on_whole_batch"):
            setattr(each, name, _of_whole_batch(method))


def mean_over_rows(value):
    """The mean over the rows of the batch of a number that a shard has for each of its own."""
    if not is_divided():
        return value
    count = ops.cast(_own_count(), value.dtype)
    return ops.divide(ops.all_reduce_sum(ops.multiply(value, count)), ops.all_reduce_sum(count))


def summed_over_shards(function):
    """A function of a shard's tensors, whose number is the sum over the shards. None stays None."""
    if function is None or not sees_shard():
        return function
    return lambda *args: ops.all_reduce_sum(function(*args))


# ---- steps

class DividedStep:
    """A step of one nest of tensors, whose rows are divided. Traced once for each size of shards."""

    def __init__(self, strategy, step, name):
        self._strategy, self._step, self._handle = strategy, step, _native._StepHandle()
        self.__name__ = name
        _let_see_whole_batches()

    def __call__(self, data):
        count = next(leaf for leaf in tree.flatten(data) if leaf is not None).shape[0]

        def step(data, rows):
            with attributes(_here, rows=rows, count=count):
                return self._step(data)
        step.__name__ = self.__name__
        return self._strategy._run(self._handle, step, (data, ops.range(count, dtype="int64")), {}, _mean)


def _mean(values):
    """One result of those of the replicas: exactly the first one where all are the same."""
    first, *others = values
    if not others or not first.dtype.is_floating:
        return first
    return ops.add(first, ops.divide(ops.add_n([ops.subtract(each, first) for each in others]), len(values)))


# ---- strategies

def strategy_here():
    """The strategy whose scope this is, or None."""
    return distribute.get_strategy() if distribute.has_strategy() and not distribute.is_within_step() else None


def strategy_of(own):
    """The strategy of a model: its own, else that of keras.distribution; None is one device."""
    if own is not None:
        return own
    from keras.src.distribution import distribution_lib
    distribution = distribution_lib.distribution()
    if distribution is None:
        return None
    if not isinstance(distribution, distribution_lib.DataParallel):
        raise NotImplementedError(f"{type(distribution).__name__}: this backend replicates models, by "
                                  "keras.distribution.DataParallel, and does not divide their Variables")
    devices = tuple(str(each) for each in distribution.device_mesh.devices.flatten())
    processes = num_processes()
    shards = max(SHARDS, len(devices))
    key = processes if processes > 1 else devices
    if key not in _known:
        _known[key] = distribute.MultiWorkerMirroredStrategy(micro_shards=shards) if processes > 1 else \
            distribute.MirroredStrategy(list(devices), micro_shards=shards)
    return _known[key]


def is_first_process(strategy):
    """True in the process that reports."""
    return strategy is None or strategy._strategy.rank == 0
