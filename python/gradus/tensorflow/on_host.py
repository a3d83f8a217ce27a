"""Functions of tensors that also take strings and ragged rows, which they compute on the host by NumPy."""
import functools
import types

import numpy as np

from .. import _native, constant as _constant, int32, ops
from .dtypes import as_dtype
from .ragged import RaggedTensor, _array, _tensor, map_flat_values
from .ragged import stack as _stack_ragged
from .texts import StringTensor, is_string_like, string


def _sizes(shape):
    return tuple(int(n) for n in np.asarray(shape).ravel())


def _ints(values):
    return np.asarray(values).astype(np.int64)


def _only_strings(name, value):
    if isinstance(value, RaggedTensor):
        raise TypeError(f"{name}: a RaggedTensor; flat_values and to_tensor() give tensors")


# ---- one function each, with TensorFlow's parameters

def _expand_dims(input, axis, name=None):
    if isinstance(input, RaggedTensor):
        if axis != 0:
            raise ValueError("expand_dims: the axis of a RaggedTensor is 0")
        return RaggedTensor(input, [0, len(input)])
    return _tensor(np.expand_dims(_array(input), int(axis)))


def _squeeze(input, axis=None, name=None):
    _only_strings("squeeze", input)
    return _tensor(np.squeeze(_array(input), None if axis is None else tuple(np.ravel(axis).tolist())))


def _reshape(tensor, shape, name=None):
    _only_strings("reshape", tensor)
    return _tensor(_array(tensor).reshape(_sizes(shape)))


def _concat(values, axis, name=None):
    if any(isinstance(each, RaggedTensor) for each in values):
        if int(axis) == 0:
            rows = [each if isinstance(each, RaggedTensor) else RaggedTensor.from_tensor(each) for each in values]
            return _stack_ragged([row for each in rows for row in each])
        if int(axis) not in (1, -1):
            raise ValueError("concat: the axis of RaggedTensors is 0 or 1")
        return _stack_ragged([_concat_rows(rows) for rows in zip(*values, strict=True)])
    return _tensor(np.concatenate([_array(_strings(each)) for each in values], int(axis)))


def _concat_rows(rows):
    return _tensor(np.concatenate([_array(each) for each in rows]))


def _strings(value):
    return StringTensor(value) if is_string_like(value) else value


def _stack(values, axis=0, name=None):
    if any(isinstance(each, RaggedTensor) for each in values):
        return _stack_ragged(values, axis)
    return _tensor(np.stack([_array(_strings(each)) for each in values], axis))


def _unstack(value, num=None, axis=0, name="unstack"):
    return [_tensor(each) for each in np.moveaxis(_array(value), axis, 0)]


def _gather(params, indices, validate_indices=None, axis=None, batch_dims=0, name=None):
    if batch_dims:
        raise ValueError("gather: strings are gathered with batch_dims=0")
    if isinstance(params, RaggedTensor):
        if axis not in (None, 0) or _ints(indices).ndim != 1:
            raise ValueError("gather: rows of a RaggedTensor are gathered by a vector of their numbers")
        return _stack_ragged([params[int(i)] for i in _ints(indices)])
    array, where = _array(params), _ints(indices)
    size = array.shape[axis or 0]
    if where.size and (where.min() < 0 or where.max() >= size):
        from .errors import InvalidArgumentError
        raise InvalidArgumentError(f"gather: indices from {where.min()} to {where.max()} for {size} slices")
    return _tensor(np.take(array, where, axis or 0))


def _gather_nd(params, indices, batch_dims=0, name=None):
    _only_strings("gather_nd", params)
    where = _ints(indices)
    return _tensor(_array(params)[tuple(np.moveaxis(where, -1, 0))])


def _where(condition, x=None, y=None, name=None):
    if isinstance(condition, RaggedTensor):
        return map_flat_values(_where, condition, x, y)
    return _tensor(np.where(np.asarray(condition), _array(_strings(x)), _array(_strings(y))))


def _tile(input, multiples, name=None):
    _only_strings("tile", input)
    return _tensor(np.tile(_array(input), _sizes(multiples)))


def _transpose(a, perm=None, conjugate=False, name=None):
    _only_strings("transpose", a)
    return _tensor(np.transpose(_array(a), None if perm is None else _sizes(perm)))


def _reverse(tensor, axis, name=None):
    if isinstance(tensor, RaggedTensor):
        return _stack_ragged([_reverse(row, 0) for row in tensor]) if _sizes(axis) == (1,) else _gather(
            tensor, range(len(tensor) - 1, -1, -1))
    return _tensor(np.flip(_array(tensor), _sizes(axis)))


def _broadcast_to(input, shape, name=None):
    return _tensor(np.broadcast_to(_array(input), _sizes(shape)).copy())


def _slice(input_, begin, size, name=None):
    _only_strings("slice", input_)
    array = _array(input_)
    return _tensor(array[tuple(slice(b, None if n == -1 else b + n) for b, n in zip(_sizes(begin), _sizes(size)))])


def _boolean_mask(tensor, mask, axis=None, name="boolean_mask"):
    _only_strings("boolean_mask", tensor)
    mask = np.asarray(mask)
    return _tensor(_array(tensor)[(slice(None),) * (axis or 0) + (mask,)])


def _repeat(input, repeats, axis=None, name=None):
    _only_strings("repeat", input)
    return _tensor(np.repeat(_array(input), np.asarray(repeats), axis))


def _pad(tensor, paddings, mode="CONSTANT", constant_values="", name=None):
    _only_strings("pad", tensor)
    if mode.upper() != "CONSTANT":
        raise ValueError("pad: strings are padded with a constant")
    array = _array(tensor)
    pairs = [tuple(pair) for pair in _ints(paddings).tolist()]
    made = np.full([n + a + b for n, (a, b) in zip(array.shape, pairs)], StringTensor(constant_values or "").item(), object)
    made[tuple(slice(a, a + n) for n, (a, _) in zip(array.shape, pairs))] = array
    return StringTensor(made)


def _split(value, num_or_size_splits, axis=0, num=None, name="split"):
    _only_strings("split", value)
    parts = np.asarray(num_or_size_splits)
    cuts = int(parts) if parts.ndim == 0 else np.cumsum(parts)[:-1]
    return [_tensor(each) for each in np.split(_array(value), cuts, axis)]


def _unique_of(x):
    found, places, idx = {}, [], []
    for value in _array(x).tolist():
        if value not in found:
            found[value] = len(found)
            places.append(value)
        idx.append(found[value])
    return StringTensor(np.array(places, object)), np.array(idx, np.int64)


def _unique(x, out_idx=int32, name=None):
    from .tensors import Unique
    y, idx = _unique_of(x)
    return Unique(y, _constant(idx, as_dtype(out_idx)))


def _unique_with_counts(x, out_idx=int32, name=None):
    from .tensors import UniqueWithCounts
    y, idx = _unique_of(x)
    counts = np.bincount(idx, minlength=len(y))
    return UniqueWithCounts(y, _constant(idx, as_dtype(out_idx)), _constant(counts, as_dtype(out_idx)))


def _cast(x, dtype, name=None):
    if isinstance(x, RaggedTensor):
        return x.with_flat_values(_cast(x.flat_values, dtype) if x.dtype == string else ops.cast(x.flat_values, as_dtype(dtype)))
    if as_dtype(dtype) != string:
        raise TypeError(f"cast: strings are no {as_dtype(dtype).name}: tf.strings.to_number reads numbers, and layers such as "
                        "TextVectorization and StringLookup, mapped over the data or first in the model, make them of words")
    return _strings(x)


def _zeros_like(input, dtype=None, name=None):
    if isinstance(input, RaggedTensor):
        return map_flat_values(lambda x: _zeros_like(x, dtype), input)
    dtype = as_dtype(dtype or input.dtype)
    return StringTensor(np.full(_array(input).shape, b"", object)) if dtype == string else ops.zeros(list(input.shape), dtype)


def _ones_like(input, dtype=None, name=None):
    if isinstance(input, RaggedTensor):
        return map_flat_values(lambda x: _ones_like(x, dtype), input)
    if as_dtype(dtype or input.dtype) == string:
        raise TypeError("ones_like: strings have no one; dtype= gives another dtype")
    return ops.ones(list(input.shape), as_dtype(dtype or input.dtype))


def _shape(input, out_type=int32, name=None):
    _only_strings("shape", input)
    return _constant(np.array(_array(input).shape, np.int64), as_dtype(out_type))


def _size(input, out_type=int32, name=None):
    count = len(input.flat_values) if isinstance(input, RaggedTensor) else _array(input).size
    return _constant(count, as_dtype(out_type))


def _rank(input, name=None):
    return _constant(input.ndim, int32)


def _identity(input, name=None):
    return input


def _compared(compare):
    def of(x, y, name=None):
        if isinstance(x, RaggedTensor) or isinstance(y, RaggedTensor):
            return map_flat_values(of, x, y)
        return _constant(np.asarray(compare(_array(_strings(x)), _array(_strings(y))), bool))
    return of


_equal, _not_equal = _compared(np.equal), _compared(np.not_equal)
NAMES = """broadcast_to boolean_mask cast concat equal expand_dims gather gather_nd identity not_equal ones_like pad rank repeat
reshape reverse shape size slice split squeeze stack tile transpose unique unique_with_counts unstack where zeros_like""".split()


def is_on_host(value):
    """True for strings, ragged rows and lists that contain them."""
    if isinstance(value, (StringTensor, RaggedTensor)):
        return True
    return any(is_on_host(each) for each in value) if isinstance(value, (list, tuple)) else is_string_like(value)


def taking_strings(name, function):
    """The function of this name, extended to values on the host. The engine's function is called first, so calls with tensors
    of numbers do not change."""
    on_host = globals()[f"_{name}"]

    def otherwise(*args, **kwargs):
        given = [*args, *kwargs.values()]
        is_cast = name == "cast" and len(given) > 1 and given[1] == string and is_string_like(given[0])
        return on_host(*args, **kwargs) if is_cast or any(is_on_host(each) for each in given[:3]) else NotImplemented
    if not isinstance(function, types.FunctionType):  # a renamed op, which calls `otherwise` itself
        _native._otherwise(function, otherwise)
        return function

    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except (TypeError, ValueError, AttributeError):
            made = otherwise(*args, **kwargs)
            if made is NotImplemented:
                raise
        return made
    return call
