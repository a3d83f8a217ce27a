"""keras.ops of NumPy's names: Keras's, and those whose text asks for shapes that follow from values."""
import gradus as _gradus
import gradus.tensorflow as _tf
import numpy as _np
from gradus import ops as _ops
from gradus.tensorflow.texts import StringTensor as _StringTensor
from keras.src.backend.common import standardize_dtype as _standardize_dtype
from keras.src.backend.common.dtypes import result_type as _result_type
from keras.src.backend.config import floatx as _floatx

from keras_gradus.src import keras_text
from keras_gradus.src.ops.core import convert_to_tensor as _convert

keras_text.run(globals())
_quantile_of_numbers = quantile  # noqa: F821, of Keras's text
_expand_dims_of_numbers, _squeeze_of_numbers = expand_dims, squeeze  # noqa: F821


def expand_dims(x, axis):
    """A new axis of one element, also of a tensor of texts."""
    return _tf.expand_dims(x, axis) if isinstance(x, _StringTensor) else _expand_dims_of_numbers(x, axis)


def squeeze(x, axis=None):
    """Without axes of one element, also of a tensor of texts."""
    return _tf.squeeze(x, axis) if isinstance(x, _StringTensor) else _squeeze_of_numbers(x, axis)


def add(x1, x2):
    """The sum. Keras's text looks for biases by their sizes, which may be open here; the engine fuses them anyway."""
    x1, x2 = (x if isinstance(x, (int, float)) else _convert(x) for x in (x1, x2))
    dtype = _result_type(getattr(x1, "dtype", type(x1)), getattr(x2, "dtype", type(x2)))
    return _ops.add(_convert(x1, dtype), _convert(x2, dtype))


def argpartition(x, kth, axis=-1):
    """The order by which x is sorted, which is a partition at every place."""
    x = _convert(x)
    x, axis = (_ops.reshape(x, [-1]), 0) if axis is None else (x, axis)
    return _ops.cast(_ops.argsort(x, axis), "int32")


def histogram(x, bins=10, range=None):
    """How many elements lie in each of `bins` equal parts of the range, by default from the least to the largest, and the
    bounds of the parts."""
    x = _ops.reshape(_convert(x), [-1])
    low, high = (_ops.reduce_min(x), _ops.reduce_max(x)) if range is None else (_convert(end, dtype=x.dtype) for end in range)
    edges = _ops.cast(_tf.linspace(low, high, bins + 1), x.dtype)
    place = _tf.searchsorted(edges[1:-1], x, side="right")
    within = _ops.logical_and(_ops.greater_equal(x, low), _ops.less_equal(x, high))
    place = _ops.where(within, place, _ops.cast(-1, place.dtype))
    return _ops.unsorted_segment_sum(_ops.ones_like(x), place, bins), edges


def unique(x, sorted=True, return_index=False, return_inverse=False, return_counts=False, axis=None, size=None,
           fill_value=None):
    """The elements, or slices along the axis, each once and in order, whatever `sorted` says; where each comes first, its
    number for each element, and how often it comes. With a size there are as many, the last ones of fill_value."""
    x = _convert(x)
    found = list(_np.unique(x.numpy(), True, True, True, axis=axis, equal_nan=False))
    found[2] = found[2].reshape(x.shape if axis is None else -1)
    if size is not None:
        places, at = (slice(None),) * (0 if axis is None else axis % x.ndim) + (slice(size),), 0 if axis is None else axis
        for i, fill in ((0, 0 if fill_value is None else fill_value), (1, 1), (3, 0)):
            part = found[i][places if i == 0 else slice(size)]
            missing = [(0, 0)] * part.ndim
            missing[at if i == 0 else 0] = (0, size - part.shape[at if i == 0 else 0])
            found[i] = _np.pad(part, missing, constant_values=fill)
    asked = (True, return_index, return_inverse, return_counts)
    results = [_gradus.constant(part if i == 0 else part.astype("int32")) for i, part in enumerate(found) if asked[i]]
    return tuple(results) if len(results) > 1 else results[0]


def nanquantile(x, q, axis=None, method="linear", keepdims=False):
    """The quantiles of the elements that are not NaN, NaN where there are none."""
    x = _convert(x)
    if not x.dtype.is_floating:
        return _quantile_of_numbers(x, q, axis=axis, method=method, keepdims=keepdims)
    shares, rank = _convert(q, dtype="float64"), x.ndim
    axes = list(range(rank)) if axis is None else sorted(a % rank for a in ([axis] if isinstance(axis, int) else axis))
    others = [a for a in range(rank) if a not in axes]
    rows = _ops.reshape(_ops.transpose(x, others + axes), [*(x.shape[a] for a in others), -1])
    found = _quantiles_of_rows(rows, _ops.reshape(shares, [-1]), method)
    sizes = [1 if a in axes else x.shape[a] for a in range(rank)] if keepdims else [x.shape[a] for a in others]
    result = _result_type(_standardize_dtype(x.dtype), float)
    return _ops.cast(_ops.reshape(found, [*shares.shape, *sizes]), result)


def _quantiles_of_rows(rows, shares, method):
    """[shares, ...] of rows [..., n], as float64."""
    rank = rows.ndim - 1
    is_number = _ops.logical_not(_ops.is_nan(rows))
    count = _ops.reduce_sum(_ops.cast(is_number, "float64"), axis=-1)
    ordered = _ops.sort(_ops.where(is_number, _ops.cast(rows, "float64"), _gradus.constant(float("inf"), "float64")), -1)
    count = _ops.expand_dims(count, -1)
    place = _ops.maximum(count - 1, 0) * shares  # [..., shares]

    def at(places):
        return _ops.gather(ordered, _ops.cast(places, "int64"), axis=-1, batch_dims=rank)
    low, high = _ops.floor(place), _ops.ceil(place)
    ways = {"lower": lambda: at(low), "higher": lambda: at(high), "nearest": lambda: at(_ops.round(place)),
            "midpoint": lambda: (at(low) + at(high)) / 2, "linear": lambda: at(low) + (at(high) - at(low)) * (place - low)}
    if method not in ways:
        raise ValueError(f"nanquantile: method is one of {list(ways)}, not {method!r}")
    found = _ops.where(_ops.equal(count, 0), _gradus.constant(float("nan"), "float64"), ways[method]())
    return _ops.transpose(found, [rank, *range(rank)]) if rank else found
