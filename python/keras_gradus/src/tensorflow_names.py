"""The TensorFlow that the text of Keras's TensorFlow backend sees: gradus.tensorflow, and the names that Keras asks for
beyond it. Sizes are numbers here: this backend compiles a program for each of them, so tf.shape gives an array.
"""
import types

import gradus
import gradus.tensorflow as facade
import ml_dtypes
import numpy as np
from gradus import _native, ops

from keras_gradus.src.ops.core import number_in_trace, sizes_may_be_open
from keras_gradus.src.projections import projected


def _convert(x):
    from keras_gradus.src.ops.core import convert_to_tensor
    return convert_to_tensor(x)


class _Within:
    """A module of the facade with further names."""

    def __init__(self, module, **names):
        self.__dict__.update(names, _module=module)

    def __getattr__(self, name):
        value = getattr(self._module, name)
        self.__dict__[name] = value
        return value


def at(name):
    """What `from <name> import ...` takes its names from."""
    return _EVERYWHERE if name.startswith("tensorflow.python") else _Experimental if name == "tensorflow.experimental" else tf


def _numbers(sizes):
    """Sizes as a list of numbers; those that are open stay as they are."""
    return [size if isinstance(size, gradus.Extent) else int(size) for size in np.asarray(sizes).reshape(-1)]


def _sized(f, x_name, sizes_name):
    """f(x, shape) or f(x, axes) that takes the arrays that shape() gives, and tensors of known values."""
    def with_sizes(*args, name=None, **named):
        x, sizes = (*args, *(named.pop(each) for each in (x_name, sizes_name) if each in named))
        return f(_convert(x), _numbers(sizes))
    return with_sizes


def _windowed(f):
    """A window whose length and shape are numbers or tensors of known values."""
    def of_length(window_length, *args, beta=None, **kwargs):
        return f(int(window_length), *args, **kwargs, **({} if beta is None else {"beta": float(beta)}))
    return of_length


# ---- kinds of tensors that there are none of

def _without(kind):
    def refuse(*args, **kwargs):
        raise NotImplementedError(f"the backend gradus has no {kind}")
    return refuse


class SparseTensor:
    """No tensor is one."""
    __new__ = _without("sparse tensors: leave out sparse=True")


class RaggedTensor:
    """No tensor is one."""


class _Refusing:
    """A module whose functions are all refused."""

    def __init__(self, kind):
        self._refuse = _without(kind)

    def __getattr__(self, name):
        return self._refuse


# ---- tensors and their sizes

def shape(input, out_type="int32", name=None):
    """The sizes, as an array."""
    sizes = tuple(input.shape if hasattr(input, "shape") else _convert(input).shape)
    is_open = sizes_may_be_open() and any(isinstance(size, gradus.Extent) for size in sizes)
    return np.array(sizes, dtype=object if is_open else facade.as_dtype(out_type).name)


def size(input, out_type="int32", name=None):
    """The number of elements."""
    return shape(input, out_type).prod(dtype=facade.as_dtype(out_type).name)


def cast(x, dtype, name=None):
    """facade.cast; a floating number is a part of the program."""
    is_number = type(x) is float and _native._is_traced()
    return number_in_trace(x, facade.as_dtype(dtype).name) if is_number else facade.cast(x, dtype)


def executing_eagerly():
    """False while sizes, which checks of values would read, may be open."""
    return facade.executing_eagerly() and not sizes_may_be_open()


def rank(input, name=None):
    """The number of dimensions."""
    return len(shape(input))


def broadcast_dynamic_shape(shape_x, shape_y):
    """The shape of what ops make of two tensors."""
    return np.array(np.broadcast_shapes(tuple(shape_x), tuple(shape_y)), np.int32)


def get_static_value(tensor, partial=False):
    """The value of a tensor that is known while a function is traced."""
    return tensor if isinstance(tensor, (int, float, np.generic, np.ndarray)) else facade.get_static_value(tensor)


def convert_to_tensor(value, dtype=None, dtype_hint=None, name=None):
    """facade.convert_to_tensor, which also takes Variables of Keras."""
    if hasattr(value, "__gradus_tensor__"):
        value = value.__gradus_tensor__()
    return facade.convert_to_tensor(value, dtype, dtype_hint)


# ---- convolutions and pools, channels last or first

def _moved(op, data_format, x):
    """op of the tensor with its channels last."""
    if not data_format or not data_format.startswith("NC"):
        return op(x)
    rank = x.ndim
    y = op(ops.transpose(x, [0, *range(2, rank), 1]))
    return ops.transpose(y, [0, rank - 1, *range(1, rank - 1)])


def _inner(sizes, rank, data_format):
    """The sizes of the spatial axes, of one number or a list with or without batch and channels."""
    sizes = _numbers(sizes)
    if len(sizes) == rank + 2:
        sizes = sizes[2:] if data_format and data_format.startswith("NC") else sizes[1:-1]
    return sizes * rank if len(sizes) == 1 else sizes


def convolution(input, filters, strides=None, padding="VALID", data_format=None, dilations=None, name=None):
    """Convolution over one to three spatial axes; groups follow from the channels of the filters."""
    x, rank = _convert(input), _convert(input).ndim - 2
    op = (ops.conv1d, ops.conv2d, ops.conv3d)[rank - 1]
    options = {"strides": _inner(strides or 1, rank, data_format), "dilations": _inner(dilations or 1, rank, data_format),
               "padding": padding.lower()}
    return _moved(lambda x: op(x, _convert(filters), **options), data_format, x)


def conv1d(input, filters, stride=None, padding="VALID", data_format="NWC", dilations=None, name=None):
    return convolution(input, filters, stride, padding, data_format, dilations)


def depthwise_conv2d(input, filter, strides, padding, data_format=None, dilations=None, name=None):
    options = {"strides": _inner(strides, 2, data_format), "dilations": _inner(dilations or 1, 2, data_format),
               "padding": padding.lower()}
    return _moved(lambda x: ops.depthwise_conv2d(x, _convert(filter), **options), data_format, _convert(input))


def separable_conv2d(input, depthwise_filter, pointwise_filter, strides, padding, data_format=None, dilations=None, name=None):
    channels = depthwise_conv2d(input, depthwise_filter, strides, padding, data_format, dilations)
    return convolution(channels, pointwise_filter, 1, "VALID", data_format)


def conv_transpose(input, filters, output_shape, strides, padding="SAME", data_format=None, dilations=None, name=None):
    x, rank = _convert(input), _convert(input).ndim - 2
    options = {"strides": _inner(strides, rank, data_format), "dilations": _inner(dilations or 1, rank, data_format),
               "padding": padding.lower(), "output_shape": _inner(output_shape, rank, data_format)}
    return _moved(lambda x: ops.conv_transpose(x, _convert(filters), **options), data_format, x)


def _pool(op):
    def pool(input, ksize, strides, padding, data_format=None, name=None):
        x, rank = _convert(input), _convert(input).ndim - 2
        options = {"strides": _inner(strides, rank, data_format), "padding": padding.lower()}
        return _moved(lambda x: op(x, _inner(ksize, rank, data_format), **options), data_format, x)
    return pool


max_pool, avg_pool = _pool(ops.max_pool), _pool(ops.avg_pool)


def pool(input, window_shape, pooling_type, strides=None, padding="VALID", data_format=None, dilations=None, name=None):
    return (max_pool if pooling_type == "MAX" else avg_pool)(input, window_shape, strides or 1, padding, data_format)


def bias_add(value, bias, data_format=None, name=None):
    return _moved(lambda x: ops.bias_add(x, _convert(bias)), data_format, _convert(value))


def batch_normalization(x, mean, variance, offset, scale, variance_epsilon, name=None):
    """(x - mean) / sqrt(variance + epsilon) * scale + offset, where the statistics broadcast to x."""
    factor = ops.rsqrt(ops.add(variance, variance_epsilon))
    factor = factor if scale is None else ops.multiply(factor, scale)
    shift = ops.negative(ops.multiply(mean, factor))
    shift = shift if offset is None else ops.add(offset, shift)
    return ops.add(ops.multiply(x, ops.cast(factor, x.dtype)), ops.cast(shift, x.dtype))


def depth_to_space(input, block_size, data_format="NHWC", name=None):
    return ops.depth_to_space(_convert(input), int(block_size), channels_first=data_format == "NCHW")


def space_to_depth(input, block_size, data_format="NHWC", name=None):
    return ops.space_to_depth(_convert(input), int(block_size), channels_first=data_format == "NCHW")


def stateless_dropout(x, rate, seed, rng_alg="auto_select", noise_shape=None, name=None):
    from keras_gradus.src.random import dropped
    return dropped(x, rate, seed, noise_shape)


# ---- others

def matmul(a, b, transpose_a=False, transpose_b=False, adjoint_a=False, adjoint_b=False, a_is_sparse=False, b_is_sparse=False,
           output_type=None, name=None):
    """The product, of int8 also as int32. Numbers are real, so that an adjoint is a transpose."""
    transpose_a, transpose_b = transpose_a or adjoint_a, transpose_b or adjoint_b
    a, b = _convert(a), _convert(b)
    if output_type is not None:
        a, b = ops.cast(a, output_type), ops.cast(b, output_type)
    return ops.matmul(a, b, transpose_a=transpose_a, transpose_b=transpose_b)


def bucketize(input, boundaries, name=None):
    """The number of boundaries, which are floats, that are at most each element. Integers are compared as floats."""
    x = _convert(input)
    x = x if x.dtype.is_floating else ops.cast(x, "float32")
    found = facade.searchsorted(ops.cast(gradus.constant(np.asarray(boundaries, np.float32)), x.dtype),
                                ops.reshape(x, [-1]), side="right")
    return ops.reshape(found, x.shape)


def select(condlist, choicelist, default=0):
    """The first of the choices whose condition holds, elementwise, or the default."""
    choices = [_convert(choice) for choice in choicelist]
    result = ops.cast(_convert(default), choices[0].dtype)
    for condition, choice in reversed(list(zip(condlist, choices))):
        result = ops.where(_convert(condition), choice, result)
    return result


def finfo(dtype):
    return ml_dtypes.finfo(facade.as_dtype(dtype).numpy)


def smart_cond(pred, true_fn=None, false_fn=None, name=None):
    from keras_gradus.src.loops import cond
    return cond(pred, true_fn, false_fn)


def while_loop(cond, body, loop_vars, shape_invariants=None, parallel_iterations=10, back_prop=True, swap_memory=False,
               maximum_iterations=None, name=None):
    from keras_gradus.src.loops import while_loop
    return while_loop(cond, body, loop_vars, maximum_iterations)


def map_fn(fn, elems, dtype=None, fn_output_signature=None, **options):
    from keras_gradus.src.loops import map
    return map(fn, elems)


def vectorized_map(fn, elems, fallback_to_while_loop=True, warn=True):
    from keras_gradus.src.loops import vectorized_map
    return vectorized_map(fn, elems)


def transpose(a, perm=None, conjugate=False, name="transpose"):
    """Axes in another order; a vector or number as it is."""
    a = _convert(a)
    return a if a.ndim < 2 else ops.transpose(a, [int(i) for i in (range(a.ndim)[::-1] if perm is None else perm)])


def einsum(equation, *inputs, **options):
    return ops.einsum(equation, [_convert(x) for x in inputs])


def _same(x, name=None):
    return _convert(x)


def tensordot(a, b, axes, name=None):
    """Products summed over axes, which may be a tensor of known values."""
    axes = axes if isinstance(axes, (int, list, tuple)) else np.asarray(axes).tolist()
    return facade.tensordot(_convert(a), _convert(b), axes)


def angle(input, name=None):
    """0 for a real number, pi for a negative one."""
    x = _convert(input)
    return ops.where(ops.less(x, 0), ops.cast(gradus.constant(np.pi), x.dtype), ops.multiply(x, 0))


def eye(num_rows, num_columns=None, batch_shape=None, dtype="float32", name=None):
    """The identity, of sizes that are numbers or tensors of known values."""
    return facade.eye(int(num_rows), None if num_columns is None else int(num_columns), batch_shape, dtype)


_Experimental = types.SimpleNamespace(numpy=types.SimpleNamespace(select=select, finfo=finfo, iinfo=np.iinfo))
_names = {name: value for name, value in globals().items() if not name.startswith("_") and callable(value)}
_no_complex = {"complex": _without("complex dtypes")}
tf = _Within(
    facade, **{name: _sized(getattr(ops, name), *named) for name, named in {
        "reshape": ("tensor", "shape"), "broadcast_to": ("input", "shape"), "tile": ("input", "multiples"),
        "reverse": ("tensor", "axis")}.items()},
    **{name: _names[name] for name in (
        "SparseTensor", "RaggedTensor", "shape", "size", "rank", "cast", "executing_eagerly", "broadcast_dynamic_shape",
        "get_static_value", "convert_to_tensor", "eye", "matmul", "tensordot", "einsum", "transpose", "map_fn", "vectorized_map", "while_loop")},
    signal=_Within(facade.signal, **{name: _windowed(getattr(facade.signal, name)) for name in (
        "hamming_window", "hann_window", "kaiser_window")}),
    slice=lambda x, begin, size, name=None: ops.slice(_convert(x), [int(i) for i in begin], [int(n) for n in size]),
    cond=smart_cond, complex=_without("complex dtypes"), experimental=_Experimental,
    math=_Within(facade.math, angle=angle, conj=_same, real=_same, imag=ops.zeros_like, **_no_complex),
    dtypes=_Within(facade.dtypes, **_no_complex), linalg=_Within(facade.linalg, eig=_without("complex dtypes")),
    nn=_Within(facade.nn, experimental=types.SimpleNamespace(stateless_dropout=stateless_dropout), **{
        name: _names[name] for name in (
            "convolution", "conv1d", "depthwise_conv2d", "separable_conv2d", "conv_transpose", "max_pool", "avg_pool", "pool",
            "bias_add", "batch_normalization", "depth_to_space", "space_to_depth")}),
    raw_ops=types.SimpleNamespace(Bucketize=bucketize, ImageProjectiveTransformV3=projected),
    ragged=types.SimpleNamespace(), sparse=_Refusing("sparse tensors"),
    __internal__=types.SimpleNamespace(EagerTensor=gradus.Tensor, smart_cond=types.SimpleNamespace(smart_cond=smart_cond)))
tf.nn.conv2d = tf.nn.conv3d = convolution
# Modules within TensorFlow that Keras names: a function of tf.math, and a module that only sparse tensors need.
_EVERYWHERE = types.SimpleNamespace(is_nan=facade.math.is_nan, sparse_csr_matrix_ops=None)
