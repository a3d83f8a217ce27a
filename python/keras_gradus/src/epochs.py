"""Steps as compiled functions, and epochs over arrays, whose rows the engine gathers.

Where data are arrays and no callback asks for batches, an epoch is a loop over numbers of rows: Keras's slicing, its queue of
callbacks and copies into tensors are left out, and logs are read when the progress bar shows them. Results are those of the
loop over batches, bit for bit.
"""
import time

import gradus
import numpy as np
from gradus import ops
from gradus.tensorflow.texts import StringTensor
from keras.src import layers, tree
from keras.src.callbacks import ProgbarLogger
from keras.src.layers.preprocessing.index_lookup import IndexLookup
from keras.src.optimizers.base_optimizer import BaseOptimizer as Optimizer
from keras.src.trainers.data_adapters import array_slicing
from keras.src.trainers.data_adapters.array_data_adapter import ArrayDataAdapter
from keras.src.utils.python_utils import is_default, pythonify_logs

from keras_gradus.src.ops.core import convert_to_tensor
from keras_gradus.src.replicas import DividedStep, whole

# Layers that read tables in Python, or take as many elements as their values say.
ON_THE_HOST = (IndexLookup, *(getattr(layers, name) for name in (
    "HashedCrossing", "Hashing", "TextVectorization", "Equalization", "AugMix", "RandAugment") if hasattr(layers, name)))
MOST_PROGRAMS = 1000  # batch sizes and kinds of data that a step keeps a program for
SECONDS_BETWEEN_LOOKS = 0.05  # Keras's progress bar does not write more often


def _eager(leaf):
    is_text = isinstance(leaf, np.ndarray) and leaf.dtype.kind in "OSU"
    return leaf if leaf is None or is_text else convert_to_tensor(leaf)


def _taken(leaf):
    """A leaf of the data as the compiled step takes it: what has no dtype is a tensor, too. TypeError for texts."""
    if isinstance(leaf, StringTensor) or isinstance(leaf, np.ndarray) and leaf.dtype.kind in "OSU":
        raise TypeError("the data hold texts, which no layer of the model takes: a layer such as TextVectorization or StringLookup, mapped "
                        "over the data or first in the model, makes numbers of them")
    return leaf if leaf is None or hasattr(leaf, "dtype") else convert_to_tensor(leaf)


def last_of(found):
    """The logs of the last of several batches."""
    return found[-1]


def all_of(found):
    """The outputs of several batches, as those of one."""
    if len(found) == 1:
        return found[0]
    return tree.map_structure(lambda *parts: ops.concat(list(parts), 0), *found)


def _is_of_program(model, name):
    """True for a step that the model's class, and not this package, defines."""
    return not getattr(type(model), name).__module__.startswith("keras_gradus.")


def _makes_weights(model):
    """True while layers, or optimizers that the model keeps, are not built."""
    kept = tree.flatten([value for value in vars(model).values() if isinstance(value, (list, tuple, dict, Optimizer))])
    return not all(each.built for each in (*model._flatten_layers(), *(each for each in kept if isinstance(each, Optimizer))))


class Step:
    """A model's train_step, test_step or predict_step, compiled unless run_eagerly says otherwise, or a layer works on the
    host. With a strategy it is divided among replicas. The first call of a step that the program wrote runs op by op where
    layers or optimizers are not built: it makes their weights, which no compiled step can."""

    def __init__(self, model, name, strategy=None, joined=last_of):
        self._model, self._name, self._joined, self.strategy = model, name, joined, strategy
        self.is_eager = model.run_eagerly or any(isinstance(each, ON_THE_HOST) for each in model._flatten_layers())
        if self.is_eager:
            self.of_batch = self._step
        elif strategy is not None:
            step = self._step if joined is last_of else lambda data: whole(self._step(data))  # outputs of rows, not logs
            self.of_batch = DividedStep(strategy, step, f"{model.name}.{name}")
        else:
            self.of_batch = gradus.function(self._step, name=f"{model.name}.{name}", open_sizes=False,
                                            max_variants=MOST_PROGRAMS)
        self.begins_eagerly = not self.is_eager and strategy is None and _is_of_program(model, name) and _makes_weights(model)

    def _step(self, data):
        return getattr(self._model, self._name)(data)

    def __call__(self, batches):
        """What a loop calls for one execution, of one or several batches."""
        return self._joined([self._of(data) for data in batches])

    def _of(self, data):
        if self.begins_eagerly:
            self.begins_eagerly = False
            return self._step(tree.map_structure(_eager, data))
        return self.of_batch(tree.map_structure(_eager if self.is_eager else _taken, data))


# ---- whole arrays

def _array(leaf):
    """The array of a leaf; TypeError for one that is not an array of numbers."""
    array = getattr(leaf, "array", None)
    if type(leaf) is not array_slicing.NumpySliceable or not isinstance(array, np.ndarray) or array.dtype.kind not in "biuf":
        raise TypeError("no array of numbers")
    return array


def _shared(array):
    """The array as a tensor, which shares its memory where it can."""
    try:
        return gradus.from_dlpack(array)
    except (BufferError, TypeError, ValueError, RuntimeError):
        return gradus.constant(array)


def _asks_for_batches(callback, kind):
    """True for a callback that is called for each batch."""
    if type(callback) is ProgbarLogger:
        return False
    if type(callback).__module__.startswith("keras.src.callbacks.") and getattr(callback, "save_freq", None) == "epoch":
        return False  # its hooks count batches for another save_freq
    kinds = (f"{kind}_batch", "batch") if kind == "train" else (f"{kind}_batch",)
    return not all(is_default(getattr(callback, f"on_{each}_{place}")) for each in kinds for place in ("begin", "end"))


def first_rows(adapter):
    """The first batch of arrays, without beginning an epoch; None for other data."""
    if type(adapter) is not ArrayDataAdapter:
        return None
    leaves = tree.flatten(adapter._inputs)
    if not all(leaf is None or isinstance(leaf, np.ndarray) for leaf in leaves):
        return None
    head = tree.map_structure(lambda leaf: None if leaf is None else leaf[:adapter.batch_size], adapter._inputs)
    sliceable = array_slicing.convert_to_sliceable(head, target_backend="numpy")
    return tree.map_structure(lambda leaf: None if leaf is None else leaf.convert_to_numpy(leaf[:]), sliceable)


def only_batch(x, batch_size):
    """The arrays as Keras's adapter gives them, if they are one batch; None for other data."""
    leaves = tree.flatten(x)
    if not leaves or not all(type(leaf) is np.ndarray and leaf.ndim > 0 and leaf.dtype.kind in "biuf" for leaf in leaves):
        return None
    if len({len(leaf) for leaf in leaves}) > 1 or not 0 < len(leaves[0]) <= (batch_size or 32):
        return None
    sliceable = array_slicing.convert_to_sliceable(x, target_backend="numpy")
    return tree.map_structure(lambda leaf: leaf.convert_to_numpy(leaf[:]), sliceable)


class WholeArrays:
    """The arrays of a fit or an evaluation, whose rows a step takes by their numbers."""

    def __init__(self, step, adapter):
        self._nest = array_slicing.convert_to_sliceable(adapter._inputs, target_backend="numpy")
        self._tensors = [_shared(_array(leaf)) for leaf in tree.flatten(self._nest) if leaf is not None]
        self._step, self._adapter = step, adapter
        self._count, self._batch_size = adapter._num_samples, adapter.batch_size

    def _order(self):
        """The numbers of the rows, as Keras's adapter draws them."""
        shuffle, count, size = self._adapter._shuffle, self._count, self._batch_size
        if shuffle == "batch":
            return np.concatenate([np.random.permutation(min(size, count - i)) + i for i in range(0, count, size)])
        return np.random.permutation(count) if shuffle else np.arange(count, dtype=np.int64)

    def logs(self, look, is_stopped):
        """The logs of the last step of an epoch. look(i, logs) is called now and then, and after the last step."""
        order, size, due, logs, i = self._order(), self._batch_size, 0.0, {}, 0
        for i in range(-(-self._count // size)):
            places = order[i * size:(i + 1) * size]
            logs = self._step.of_batch(self._packed([ops.gather(x, places) for x in self._tensors]))
            if is_stopped():
                break
            if time.monotonic() >= due:
                look(i, logs)
                due = time.monotonic() + SECONDS_BETWEEN_LOOKS
        look(i, logs)
        return logs

    def _packed(self, tensors):
        """The tensors in the nest of the data, which may have None."""
        tensors = iter(tensors)
        return tree.map_structure(lambda leaf: None if leaf is None else next(tensors), self._nest)


def whole_arrays(step, batches, callbacks, kind):
    """The arrays of these batches, or None where the loop over batches is needed: other data, a given number of steps, a
    callback that asks for batches, a step that is not compiled."""
    is_plain = type(step) is Step and not (step.is_eager or step.begins_eagerly) and type(batches.data_adapter) is ArrayDataAdapter
    if not is_plain or batches.steps_per_epoch or any(_asks_for_batches(each, kind) for each in callbacks.callbacks):
        return None
    try:
        return WholeArrays(step, batches.data_adapter)
    except TypeError:
        return None


def progress(callbacks, kind):
    """look(i, logs), which shows the progress of an epoch."""
    bars = [each for each in callbacks.callbacks if type(each) is ProgbarLogger]

    def look(i, logs):
        for bar in bars:
            getattr(bar, f"on_{kind}_batch_end")(i, pythonify_logs(logs) if bar.verbose == 1 else {})
    return look
