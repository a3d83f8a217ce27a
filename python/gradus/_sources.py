"""Data of fit, evaluate and predict: arrays, data sets and iterators, as data sets of batches in the dtypes of a model."""
import math
import re

import numpy as np

from . import _native, nest
from ._elements import _nested
from .datasets import Dataset

nn = _native.nn

NOTHING = object()


def parts_of(structure):
    """The structure of x, that of y or NOTHING, and True if the element has a weight."""
    if not isinstance(structure, tuple) or len(structure) > 3 or hasattr(structure, "_fields"):
        return structure, NOTHING, False
    return structure[0], structure[1] if len(structure) > 1 else NOTHING, len(structure) == 3


def is_read_once(x):
    """True for an iterator, such as a generator."""
    return not isinstance(x, (Dataset, np.ndarray, list, tuple, dict)) and hasattr(x, "__next__")


def split(x, y, sample_weight, share):
    """The rows of arrays for training, and the last rows, a share of `share`, for the validation. ValueError if one of both is
    empty."""
    parts = [None if each is None else _nested(each) for each in (x, y, sample_weight)]
    rows = len(nest.flatten(parts[0])[0])
    first = math.floor(rows * (1 - share))  # as in Keras
    if not 0 < first < rows:
        raise ValueError(f"fit: validation_split is above 0 and below 1, and leaves rows to both parts; {share} of {rows} "
                         "rows does not")

    def part(place):
        return [None if each is None else nest.map_structure(lambda t: t[place], each) for each in parts]
    return part(slice(first)), part(slice(first, None))


# ---- iterators

class ReadOnce:
    """The batches of an iterator; the first one determines their specs. One batch is read ahead, so that the last one is known
    as such. At most `most` batches are read, so that a stream with no more of them does not block."""

    def __init__(self, what, batches, most=None):
        self._batches, self._most, self._is_read = iter(batches), most, False
        self.total = None  # the number of batches, once the last one is known
        try:
            first = next(self._batches)
        except StopIteration:
            raise _native.DataLossError(f"{what}: the iterator gives no batches: it has none, or was read to its end before; "
                                        "give a new one") from None
        self._first = nest.map_structure(_native.constant, first)

    def dataset(self):
        """The batches as a data set."""
        specs = nest.map_structure(
            lambda t: _native.TensorSpec([None, *t.shape[1:]] if t.ndim else [], t.dtype), self._first)
        return Dataset.from_generator(self._read, output_signature=specs)

    def _read(self):
        if self._is_read:  # another pass of the engine, whose elements no step takes
            yield self._first
            return
        self._is_read = True
        given, current = 1, self._first
        while given != self._most:
            try:
                following = next(self._batches)
            except StopIteration:
                self.total = given
                break
            yield current
            given, current = given + 1, following
        yield current


class EndsWithData:
    """Ends a training after the last batch of an iterator, if the training wanted more."""

    def __init__(self, batches, skipped, wanted):
        self._batches, self._done, self._wanted = batches, skipped, wanted
        self.has_ended = False

    def hooks(self):
        """A callback, as the engine takes it."""
        return {"name": "end of the data", "on_step_end": self._after_step}

    def _after_step(self, step, loss):
        self._done += 1
        total = self._batches.total
        if total is not None and self._done >= total and (self._wanted is None or total < self._wanted):
            self.has_ended = True
        return self.has_ended

    def warning(self):
        """The text of the warning about the end."""
        wanted = "one pass over them for each epoch" if self._wanted is None else f"{self._wanted} batches"
        return (f"fit: the data ran out after {self._batches.total} batches, and the training ended; {wanted} would be needed: an "
                "iterator is read once: give a Dataset, such as Dataset.from_generator(function), or fewer epochs or steps")


# ---- data sets

def dataset_of(what, x, y, sample_weight, batch_size, shuffle):
    """The data set of arrays or of an iterator, or the one that was given."""
    if is_read_once(x):
        x = ReadOnce(what, x).dataset()
    if isinstance(x, Dataset):
        if y is not None or sample_weight is not None:
            raise ValueError(f"{what}: a data set has y and weights in its elements: (x, y), (x, y, sample_weight)")
        return x
    element = (x,) if y is None else (x, y) if sample_weight is None else (x, y, sample_weight)
    rows = Dataset.from_tensor_slices(element)
    return (rows.shuffle(len(rows)) if shuffle and len(rows) else rows).batch(32 if batch_size is None else batch_size)


def validation_of(given, batch_size):
    """The data set of (x, y), (x, y, sample_weight) or a Dataset."""
    parts = given if isinstance(given, (list, tuple)) else (given,)
    if is_read_once(parts[0]):
        raise TypeError("fit: validation_data is read once an epoch, and an iterator is read once: give arrays or a Dataset")
    return dataset_of("fit", *parts, *[None] * (3 - len(parts)), batch_size, False)


# ---- dtypes

# Layers that pass integers on unchanged. The layers after them decide.
_PASSES_ON = re.compile(r"Flatten|Reshape|Permute|RepeatVector|Identity|Cropping|ZeroPadding|(Global)?Max(imum)?Pool|"
                        r"AdaptiveMax|UpSampling")
# Layers that compute only with floating numbers.
_COMPUTES = re.compile(r"Dense|EinsumDense|.*Conv|.*Normalization|LSTM|GRU|SimpleRNN|RNN|Bidirectional|.*Dropout|Gaussian|"
                       r".*ReLU|ELU|Softmax|(Global|Adaptive)?(Average|Avg)")


def _first_layers(model):
    """The layers of a Sequential, with the layers of a nested Sequential in its place."""
    arguments, options = getattr(model, "_made_with", ((), {}))
    for layer in arguments[0] if arguments else options.get("layers", ()):
        if type(layer) is nn.Sequential:
            yield from _first_layers(layer)
        else:
            yield layer


def _takes_integers(model):
    """False for layers that compute with floating numbers: integers are cast for them, as Keras does."""
    layers = _first_layers(model) if isinstance(model, nn.Sequential) else (model,)
    name = next((n for n in (type(layer).__name__ for layer in layers) if not _PASSES_ON.match(n)), "")
    return not _COMPUTES.match(name)


_FLOATING = (_native.float16, _native.bfloat16, _native.float32, _native.float64)


def in_dtypes_of(model, data):
    """The data set with x in the dtype of the model's Variables: floating numbers are cast, and integers, too, if the first
    layer of a Sequential computes only with floating numbers. Before a model is built, float64 becomes float32."""
    built = next((v.dtype for v in model.variables if v.dtype in _FLOATING), None)
    takes_integers = _takes_integers(model)

    def wanted(dtype):
        if dtype in _FLOATING:
            return built or (_native.float32 if dtype == _native.float64 else dtype)
        return dtype if takes_integers or dtype == _native.bool_ else built or _native.float32

    spec = data.element_spec
    x, _, _ = parts_of(spec)
    if all(wanted(each.dtype) == each.dtype for each in nest.flatten(x) if isinstance(each, _native.TensorSpec)):
        return data

    def cast(*element):
        element = nest.pack_sequence_as(spec, nest.flatten(element)) if nest.is_nested(spec) else element[0]
        x, _, _ = parts_of(element)
        x = nest.map_structure(lambda t: _native.ops.cast(t, wanted(t.dtype)), x)
        return (x, *element[1:]) if parts_of(element)[0] is not element else x
    return data.map(cast)
