"""Functions that make, join, cut and write tensors and Variables."""
import builtins
import collections
import enum

import numpy as np

from .. import Loss, Tensor, Variable as _Variable, _native, constant as _constant, float32, int32, ops
from .._names import knows_keywords
from ._tables import fill
from .dtypes import as_dtype
from .shapes import TensorShape
from .texts import StringTensor, is_string_like, string

newaxis = None

TABLE = """
argsort(values, axis=-1, direction="ASCENDING", stable=False) = argsort(x, axis, direction, -)
batch_to_space(input, block_shape, crops) = batch_to_space(x, block_shape, crops)
bitcast(input, type) = bitcast(x, dtype)
boolean_mask(tensor, mask, axis=None) = boolean_mask(x, mask, axis)
broadcast_to(input, shape) = broadcast_to(x, shape)
cast(x, dtype)
concat(values, axis) = concat(parts, axis)
expand_dims(input, axis) = expand_dims(x, axis)
gather_nd(params, indices, batch_dims=0) = gather_nd(x, indices, batch_dims)
reshape(tensor, shape) = reshape(x, shape)
reverse(tensor, axis) = reverse(x, axis)
reverse_sequence(input, seq_lengths, seq_axis, batch_axis=None) = reverse_sequence(x, seq_lengths, seq_axis, batch_axis)
roll(input, shift, axis) = roll(x, shift, axis)
saturate_cast(value, dtype) = saturate_cast(x, dtype)
scatter_nd(indices, updates, shape)
searchsorted(sorted_sequence, values, side="left", out_type="int32")
slice(input_, begin, size) = slice(x, begin, size)
sort(values, axis=-1, direction="ASCENDING") = sort(x, axis, direction)
space_to_batch(input, block_shape, paddings) = space_to_batch(x, block_shape, paddings)
squeeze(input, axis=None) = squeeze(x, axis)
stack(values, axis=0) = stack(parts, axis)
stop_gradient(input) = stop_gradient(x)
tensor_scatter_nd_add(tensor, indices, updates) = tensor_scatter_nd_add(x, indices, updates)
tensor_scatter_nd_max(tensor, indices, updates) = tensor_scatter_nd_max(x, indices, updates)
tensor_scatter_nd_min(tensor, indices, updates) = tensor_scatter_nd_min(x, indices, updates)
tensor_scatter_nd_sub(tensor, indices, updates) = tensor_scatter_nd_sub(x, indices, updates)
tensor_scatter_nd_update(tensor, indices, updates) = tensor_scatter_nd_update(x, indices, updates)
tile(input, multiples) = tile(x, multiples)
transpose(a, perm=None, conjugate=False) = transpose(x, order, -)
unravel_index(indices, dims)
where(condition, x=None, y=None) = where(condition, a, b)
zeros(shape, dtype="float32")
ones(shape, dtype="float32")
"""
fill(globals(), TABLE)


class VariableSynchronization(enum.Enum):
    """TensorFlow's synchronization of a Variable, without effect: the engine keeps the copies of all replicas equal."""
    AUTO, NONE, ON_WRITE, ON_READ = range(4)


class VariableAggregation(enum.Enum):
    """The combination of the values that replicas assign."""
    NONE, SUM, MEAN, ONLY_FIRST_REPLICA = range(4)


_AGGREGATIONS = {VariableAggregation.NONE: "none", VariableAggregation.SUM: "sum", VariableAggregation.MEAN: "mean"}


def _aggregation(said):
    if said in _AGGREGATIONS:
        return _AGGREGATIONS[said]
    raise ValueError(f"Variable: aggregation is NONE, SUM or MEAN, not {said}")


class _VariableClass(type):
    """The class of tf.Variable, which makes Variables of gradus by TensorFlow's parameters."""

    def __instancecheck__(cls, instance):
        return isinstance(instance, _Variable)

    def __call__(cls, initial_value=None, trainable=None, validate_shape=True, caching_device=None, name=None,
                 variable_def=None, dtype=None, import_scope=None, constraint=None,
                 synchronization=VariableSynchronization.AUTO, aggregation=VariableAggregation.NONE, shape=None):
        if initial_value is None:
            raise ValueError("Variable: initial_value is needed, a tensor, a number, a list or a function that gives one")
        if constraint is not None:
            raise ValueError("Variable: a constraint belongs to a layer or is applied after each step: v.assign(f(v))")
        if shape is not None and not TensorShape(shape).is_fully_defined():
            raise ValueError("Variable: its shape never changes, so that every size is a number")
        given = initial_value() if callable(initial_value) and not is_tensor(initial_value) else initial_value
        value = convert_to_tensor(given) if dtype is None else ops.cast(convert_to_tensor(given), as_dtype(dtype))
        return _Variable(value, "" if name is None else name, trainable is None or bool(trainable),
                         aggregation=_aggregation(aggregation))


_VariableClass.__call__ = knows_keywords(_VariableClass.__call__, "Variable")


class Variable(metaclass=_VariableClass):
    """Variable(initial_value, trainable=None, ..., name=None, dtype=None): a cell that holds a tensor."""


def is_tensor(x):
    """True for a Tensor, a Variable, a Loss and a tensor of strings."""
    return isinstance(x, (Tensor, _Variable, Loss, StringTensor))


def constant(value, dtype=None, shape=None, name="Const"):
    """A tensor with a copy of numbers, lists, an array, or strings. One number fills `shape`."""
    if dtype == string or (dtype is None and is_string_like(value)):
        return StringTensor(value)
    return _constant(value, dtype, None if shape is None else TensorShape(shape))


def convert_to_tensor(value, dtype=None, dtype_hint=None, name=None):
    """A tensor as it is, a Variable's value, or a tensor of numbers, lists, an array or strings. ValueError for a tensor of
    another dtype: tf.cast changes it."""
    if dtype == string or (dtype is None and is_string_like(value)):
        return StringTensor(value)
    if is_tensor(value):
        tensor = _constant(value)
        if dtype is not None and tensor.dtype != as_dtype(dtype):
            raise ValueError(f"convert_to_tensor: the tensor is {tensor.dtype.name}, asked for as {as_dtype(dtype).name}; "
                             "tf.cast changes the dtype")
        return tensor
    if dtype is None and dtype_hint is not None:
        try:
            return _constant(value, dtype_hint)
        except (TypeError, ValueError):
            pass  # a hint does not bind
    return _constant(value, dtype)


def gather(params, indices, validate_indices=None, axis=None, batch_dims=0, name=None):
    """The slices of `params` at the indices along an axis, by default the first one after the batch dimensions."""
    batch_dims = batch_dims if batch_dims >= 0 else batch_dims + len(convert_to_tensor(indices).shape)
    return ops.gather(params, indices, axis=batch_dims if axis is None else axis, batch_dims=batch_dims)


def identity(input, name=None):
    """The tensor."""
    return convert_to_tensor(input)


def fill_(dims, value, name=None):
    """A tensor of shape `dims` with `value` everywhere."""
    return ops.broadcast_to(value, dims)


def ones_like(input, dtype=None, name=None):
    """Ones in the shape of a tensor."""
    made = ops.ones_like(input)
    return made if dtype is None else ops.cast(made, dtype)


def zeros_like(input, dtype=None, name=None):
    """Zeros in the shape of a tensor."""
    made = ops.zeros_like(input)
    return made if dtype is None else ops.cast(made, dtype)


def eye(num_rows, num_columns=None, batch_shape=None, dtype="float32", name=None):
    """Identity matrices, [batch_shape..., num_rows, num_columns]."""
    columns = num_rows if num_columns is None else num_columns
    matrix = ops.eye(num_rows, columns, dtype)
    return matrix if batch_shape is None else ops.broadcast_to(matrix, (*_native._sizes(batch_shape), num_rows, columns))


def one_hot(indices, depth, on_value=None, off_value=None, axis=None, dtype=None, name=None):
    """on_value at the indices, off_value elsewhere, along a new axis of size `depth`."""
    given = [v for v in (on_value, off_value) if v is not None]
    found = as_dtype(dtype) if dtype is not None else convert_to_tensor(given[0]).dtype if given else float32
    place = -1 if axis is None else axis
    if not given and place == -1:
        return ops.one_hot(indices, depth, found)
    return ops.one_hot(indices, depth, constant(1 if on_value is None else on_value, found),
                       constant(0 if off_value is None else off_value, found), axis=place)


def _is_whole(number):
    return type(number) in (int, _native.Extent) or (isinstance(number, Tensor) and number.ndim == 0 and "int" in number.dtype.name)


def range_(start, limit=None, delta=1, dtype=None, name=None):
    """start, start + delta ... before the limit; with one argument, 0, 1 ... before it."""
    start, limit = (0, start) if limit is None else (start, limit)
    if type(start) is int and start == 0 and type(delta) is int and delta == 1 and _is_whole(limit):
        size = _native._size(limit)  # which may be open while a function is traced
        if isinstance(size, _native.Extent) or size >= 0:
            return ops.range(size, as_dtype(dtype or getattr(limit, "dtype", int32)))
    numbers = [getattr(n, "item", lambda n=n: n)() for n in (start, limit, delta)]
    if dtype is None:
        has_type = [n.dtype for n in (start, limit, delta) if hasattr(n, "dtype")]
        dtype = has_type[0] if has_type else float32 if any(isinstance(n, float) for n in numbers) else int32
    return ops.range(*numbers, as_dtype(dtype))


def linspace(start, stop, num, name=None, axis=0):
    """`num` numbers in equal steps from start to stop, both included."""
    if not is_tensor(start) and not is_tensor(stop):
        return ops.linspace(float(start), float(stop), num)
    start, stop, num = convert_to_tensor(start), convert_to_tensor(stop), int(num)
    if num == 0:
        return ops.stack([start + stop], axis)[(builtins.slice(None),) * (axis % (start.ndim + 1)) + (builtins.slice(0, 0),)]
    parts = [start + (stop - start) * (i / max(num - 1, 1)) for i in builtins.range(num)]
    return ops.stack(parts, axis)


def meshgrid(*args, indexing="xy", name=None):
    """Grids of the coordinates of vectors, one tensor for each."""
    return list(ops.meshgrid(list(args), indexing))


def pad(tensor, paddings, mode="CONSTANT", constant_values=0, name=None):
    """The tensor with paddings[i] = (before, after) more elements along axis i: constant_values, or by the mode "REFLECT" or
    "SYMMETRIC"."""
    pairs = [tuple(_native._sizes(pair)) for pair in (ops.unstack(paddings) if is_tensor(paddings) else paddings)]
    if mode.upper() == "CONSTANT":
        return ops.pad(tensor, pairs, constant_values)
    return ops.pad(tensor, pairs, mode.lower())


def repeat(input, repeats, axis=None, name=None):
    """Each element of the flat tensor, or each slice along the axis, `repeats` times: one number, or one for each."""
    if axis is None:
        input, axis = ops.reshape(input, [-1]), 0
    if isinstance(repeats, Tensor) and repeats.ndim == 0:
        repeats = _native._size(repeats)
    elif np.shape(repeats) == (1,):
        repeats = repeats[0]  # one number for all
    return ops.repeat(input, repeats, axis)


def split(value, num_or_size_splits, axis=0, num=None, name="split"):
    """A list of parts along the axis: of equal size, or of these sizes."""
    if is_tensor(num_or_size_splits):
        num_or_size_splits = num_or_size_splits.numpy()
    parts = np.asarray(num_or_size_splits)
    if parts.ndim == 0:
        return list(ops.split(value, parts=int(parts), axis=axis))
    return list(ops.split(value, sizes=[int(n) for n in parts], axis=axis))


def sequence_mask(lengths, maxlen=None, dtype="bool", name=None):
    """[..., maxlen]: True where the position is before the length."""
    longest = int(np.max(convert_to_tensor(lengths).numpy(), initial=0)) if maxlen is None else _native._size(maxlen)
    mask = ops.sequence_mask(lengths, longest)
    return mask if as_dtype(dtype) == mask.dtype else ops.cast(mask, dtype)


def shape_(input, out_type=int32, name=None):
    """The sizes, as a vector."""
    return ops.shape(input, out_type)


def size(input, out_type=int32, name=None):
    """The number of elements, as a scalar."""
    return ops.size(input, out_type)


def rank(input, name=None):
    """The number of dimensions, as an int32 scalar."""
    return constant(convert_to_tensor(input).ndim, int32)


def broadcast_static_shape(shape_x, shape_y):
    """The shape to which two shapes broadcast. ValueError if they do not."""
    return TensorShape(np.broadcast_shapes(tuple(shape_x), tuple(shape_y)))


def clip_by_value(t, clip_value_min, clip_value_max, name=None):
    """The tensor with its elements clipped to the bounds, which may be tensors."""
    return ops.minimum(ops.maximum(t, clip_value_min), clip_value_max)


def clip_by_norm(t, clip_norm, axes=None, name=None):
    """The tensor scaled down so that its norm, over all axes or these, is at most clip_norm."""
    if axes is None and not is_tensor(clip_norm):
        return ops.clip_by_norm(t, float(clip_norm))
    norms = ops.norm(t, axis=axes, keepdims=True)
    return convert_to_tensor(t) * (clip_norm / ops.maximum(norms, clip_norm))


def strided_slice(input_, begin, end, strides=None, begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0,
                  shrink_axis_mask=0, var=None, name=None):
    """Slices, with TensorFlow's masks. input_[begin:end:stride] is shorter."""
    return ops.strided_slice(input_, begin, end, strides=strides, begin_mask=begin_mask, end_mask=end_mask,
                             ellipsis_mask=ellipsis_mask, new_axis_mask=new_axis_mask,
                             shrink_axis_mask=shrink_axis_mask)


def unstack(value, num=None, axis=0, name="unstack"):
    """The slices along an axis, as a list. ValueError if there are not `num` of them."""
    value = convert_to_tensor(value)
    if num is not None and num != value.shape[axis]:
        raise ValueError(f"unstack: num is {num}, and the axis {axis} of {value.shape} has {value.shape[axis]} slices")
    return list(ops.unstack(value, axis))


Unique = collections.namedtuple("Unique", "y idx")
UniqueWithCounts = collections.namedtuple("UniqueWithCounts", "y idx count")


def unique(x, out_idx=int32, name=None):
    """y, the distinct elements of a vector in the order of their first occurrence, and idx, the index of each element in y."""
    return Unique(*ops.unique(x, out_idx=out_idx)[:2])


def unique_with_counts(x, out_idx=int32, name=None):
    """unique(), and the number of occurrences of each element: y, idx and count."""
    found = ops.unique_with_counts(x)
    return UniqueWithCounts(found[0], ops.cast(found[1], out_idx), ops.cast(found[2], out_idx))


def ensure_shape(x, shape, name=None):
    """The tensor; ValueError unless its shape is compatible with `shape`."""
    x.shape.assert_is_compatible_with(shape)
    return x


def histogram_fixed_width(values, value_range, nbins=100, dtype=int32, name=None):
    """The number of values in each of nbins equal parts of the range; values outside count in the first and last part."""
    low, high = (float(n) for n in value_range)
    return ops.histogram_fixed_width(values, low, high, bins=nbins, dtype=dtype)


def get_static_value(tensor, partial=False):
    """The array of a tensor that is known while a function is traced; None for others."""
    return None if getattr(tensor, "is_symbolic", False) else convert_to_tensor(tensor).numpy()


globals().update({"range": range_, "shape": shape_, "fill": fill_})
