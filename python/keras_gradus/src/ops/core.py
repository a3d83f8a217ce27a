"""Tensors, shapes, scatter and gather by index, what Keras calls the core of a backend. Loops are in loops.py."""
import contextlib
import functools
import threading

import gradus
import gradus.tensorflow as tf
import numpy as np
from keras.src import tree
from keras.src.backend.common import KerasVariable, standardize_dtype
from keras.src.backend.common.backend_utils import slice_along_axis
from keras.src.backend.common.keras_tensor import KerasTensor
from keras.src.backend.common.stateless_scope import StatelessScope
from keras.src.backend.common.symbolic_scope import SymbolicScope
from keras.src.backend.common.variables import standardize_shape as _standard_shape
from gradus import _native, datasets, ops
from gradus.tensorflow.texts import StringTensor, is_string_like

from keras_gradus.src.loops import cond, fori_loop, map, scan, switch, vectorized_map, while_loop  # noqa: F401
from keras_gradus.src.scopes import attributes

SUPPORTS_SPARSE_TENSORS = False
SUPPORTS_RAGGED_TENSORS = False
SUPPORTS_COMPLEX_DTYPES = False
IS_THREAD_SAFE = True

# ---- conversion


class _Sizes(threading.local):
    may_be_open = False
    of_elements = False


_sizes = _Sizes()


def with_open_sizes():
    """Within, sizes may stay open: what is exported then takes batches of any size."""
    return attributes(_sizes, may_be_open=True)


def within_elements():
    """Within, functions of data sets are traced, which may assign no state: layers draw for each element."""
    return attributes(_sizes, of_elements=True)


def within_elements_of_open_sizes():
    return attributes(_sizes, may_be_open=True, of_elements=True)


datasets.traced_first[:] = [within_elements_of_open_sizes, within_elements]


def draws_for_elements():
    """True while a function of a data set is traced."""
    return _sizes.of_elements and _native._is_traced()


def sizes_may_be_open():
    return _sizes.may_be_open


def is_tensor(x):
    """True for the engine's tensors and Variables. Keras reads sizes as numbers: a function that is traced with open sizes
    learns here that it needs them, and is traced for each size."""
    if isinstance(x, gradus.Tensor):
        if x.is_symbolic and not _sizes.may_be_open:
            for size in x.shape:
                int(size)
        return True
    return isinstance(x, (gradus.Variable, StringTensor))


def standardize_shape(shape):
    """Keras's, for which open sizes are unknown."""
    if _sizes.may_be_open and hasattr(shape, "__iter__"):
        shape = tuple(None if isinstance(size, gradus.Extent) else size for size in shape)
    return _standard_shape(shape)


def convert_to_tensor(x, dtype=None, sparse=None, ragged=None):
    """The tensor of a tensor, Variable, number, list or array, cast where its dtype is another one."""
    if isinstance(x, gradus.Tensor):
        return x if dtype is None or x.dtype == standardize_dtype(dtype) else cast(x, dtype)
    if isinstance(x, KerasTensor):
        raise ValueError(f"a KerasTensor stands for tensors of a functional model and has no values: {x!r}. Call a layer, or "
                         "an operation of keras.ops, on it")
    if x is None:
        raise ValueError("None cannot be converted to a tensor")
    if isinstance(x, StringTensor) or dtype == "string" or isinstance(x, np.ndarray) and x.dtype.kind in "OSU" and is_string_like(x):
        return tf.cast(x, "string" if dtype is None else standardize_dtype(dtype))
    if type(x) is float and _native._is_traced():
        return number_in_trace(x, dtype)
    if dtype is None:
        return gradus.constant(x)
    dtype = standardize_dtype(dtype)
    if dtype == "float64" and not hasattr(x, "dtype"):
        return gradus.constant(x, dtype)
    return cast(_number(x) if isinstance(x, int) else gradus.constant(x), dtype)


def number_in_trace(x, dtype=None):
    """A floating number as a part of the program, where a constant would be a tensor that it captures."""
    dtype = "float32" if dtype is None else standardize_dtype(dtype)
    is_floating = dtype in ("float16", "bfloat16", "float32", "float64")
    return ops.full([], x, dtype) if is_floating else ops.cast(gradus.constant(x), dtype)


def _number(x):
    """A Python integer as it is, also one that is no int32."""
    return gradus.constant(np.asarray(x)) if abs(x) >= 2**31 else gradus.constant(x)


def convert_to_numpy(x):
    """An array that may be written. Texts, of which there are no tensors, are an array of texts."""
    if is_tensor(x) or isinstance(x, np.ndarray):
        return np.array(x)
    if any(isinstance(leaf, (str, bytes)) for leaf in tree.flatten(x)):
        return np.array(x)
    return np.array(convert_to_tensor(x))


def cast(x, dtype):
    """The tensor in another dtype."""
    return ops.cast(x, standardize_dtype(dtype))


def shape(x):
    """The sizes, as a tuple; None for those of a KerasTensor that vary."""
    return tuple(x.shape if hasattr(x, "shape") else convert_to_tensor(x).shape)


def stop_gradient(variable):
    return ops.stop_gradient(variable)


def random_seed_dtype():
    """The dtype of seeds: what the engine's stateless functions take."""
    return "int64"


def unstack(x, num=None, axis=0):
    return list(ops.unstack(x, axis))


# ---- shapes without values

SIZES = (83, 89)  # two for those that vary: an output size that differs between both varies, too


def compute_output_spec(fn, *args, **kwargs):
    """The KerasTensors of a function's results. It is called on zeros that nothing computes, since tensors are lazy: once,
    or for each of SIZES if sizes vary."""
    given = [leaf for leaf in tree.flatten((args, kwargs)) if isinstance(leaf, KerasTensor)]
    varies = any(size is None for leaf in given for size in leaf.shape)

    def zeros_of(leaf, size):
        if not isinstance(leaf, KerasTensor):
            return leaf
        if leaf.dtype == "string":  # as many words as rows, so that numbers of words vary, too
            text = " ".join(["x"] * size)
            return StringTensor(np.full([size if each is None else each for each in leaf.shape], text, object))
        return ops.zeros([size if each is None else each for each in leaf.shape], leaf.dtype)

    def results(size):
        at = tree.map_structure(functools.partial(zeros_of, size=size), (args, kwargs))
        return fn(*at[0], **at[1])

    def spec(*results):
        if not is_tensor(results[0]):
            return results[0]
        sizes = [each[0] if len(set(each)) == 1 else None for each in zip(*(r.shape for r in results))]
        return KerasTensor(sizes, standardize_dtype(results[0].dtype))

    with StatelessScope(), SymbolicScope():
        try:
            return tree.map_structure(spec, *[results(size) for size in (SIZES if varies else SIZES[:1])])
        except Exception:
            if not any(leaf.dtype == "string" for leaf in given):
                raise
            return fn(*args, **kwargs)  # a table may refuse unknown words: layers themselves tell what they make of texts


# ---- parts by index

def _starts(start_indices, sizes, shape):
    """Start indices as a tensor [rank], so that the part lies within the tensor, as JAX has it."""
    starts = ops.cast(convert_to_tensor(start_indices), "int32")
    most = gradus.constant([whole - part for whole, part in zip(shape, sizes)], "int32")
    return ops.maximum(ops.minimum(starts, most), 0)


def _places(start_indices, sizes, shape):
    """The indices [sizes..., rank] of the elements of a part that begins at start_indices."""
    starts = _starts(start_indices, sizes, shape)
    grid = np.stack(np.meshgrid(*[np.arange(size, dtype=np.int32) for size in sizes], indexing="ij"), -1)
    return ops.add(gradus.constant(grid), starts)


def _known(start_indices):
    """Start indices as numbers, or None while they are values of a function that is traced."""
    leaves = list(start_indices) if isinstance(start_indices, (list, tuple)) else [start_indices]
    if any(getattr(leaf, "is_symbolic", False) for leaf in leaves):
        return None
    return [int(i) for i in np.asarray(convert_to_numpy(start_indices)).reshape(-1)]


def slice(inputs, start_indices, shape):
    inputs, sizes, begin = convert_to_tensor(inputs), [int(size) for size in shape], _known(start_indices)
    if begin is not None:
        return ops.slice(inputs, begin, sizes)
    return ops.gather_nd(inputs, _places(start_indices, sizes, inputs.shape))


def slice_update(inputs, start_indices, updates):
    inputs, updates = convert_to_tensor(inputs), convert_to_tensor(updates)
    return ops.tensor_scatter_nd_update(inputs, _places(start_indices, updates.shape, inputs.shape), updates)


def scatter(indices, values, shape):
    return ops.scatter_nd(convert_to_tensor(indices), convert_to_tensor(values), tuple(int(size) for size in shape))


def scatter_update(inputs, indices, updates, reduction=None):
    by = {None: tf.tensor_scatter_nd_update, "add": tf.tensor_scatter_nd_add, "max": tf.tensor_scatter_nd_max,
          "min": tf.tensor_scatter_nd_min, "mul": _scatter_multiplied}
    if reduction not in by:
        raise ValueError(f"scatter_update: reduction is None, add, max, min or mul, not {reduction!r}")
    inputs = convert_to_tensor(inputs)
    return by[reduction](inputs, convert_to_tensor(indices), convert_to_tensor(updates, dtype=inputs.dtype))


def _scatter_multiplied(inputs, indices, updates):
    """The product with updates that may name a place several times, in their order."""
    def one(i, product):
        place = ops.expand_dims(ops.gather(indices, i), 0)
        part = ops.multiply(ops.gather_nd(product, place), ops.gather(updates, i))
        return i + 1, ops.tensor_scatter_nd_update(product, place, part)
    count = indices.shape[0]
    return while_loop(lambda i, _: i < count, one, (0, inputs), maximum_iterations=count)[1]


# ---- prefix sums of any associative function

def associative_scan(f, elems, reverse=False, axis=0):
    """f of the first n elements, for each n, in a logarithmic number of rounds: each round combines neighbours, scans the
    half as many results, and combines these with the elements between."""
    if not callable(f):
        raise TypeError(f"`f` should be a callable. Received: f={f}")
    flat = [convert_to_tensor(elem) for elem in tree.flatten(elems)]
    counts = {elem.shape[axis] for elem in flat}
    if len(counts) != 1:
        raise ValueError("Array inputs to associative_scan must have the same first dimension. (saw: "
                         f"{[tuple(elem.shape) for elem in flat]})")
    part = functools.partial(slice_along_axis, axis=axis)

    def combine(a, b):
        return [convert_to_tensor(x) for x in
                tree.flatten(f(tree.pack_sequence_as(elems, a), tree.pack_sequence_as(elems, b)))]

    def scanned(parts):
        count = parts[0].shape[axis]
        if count < 2:
            return parts
        odd = scanned(combine([part(x, 0, count - 1, 2) for x in parts], [part(x, 1, None, 2) for x in parts]))
        first = [part(x, 0, 1) for x in parts]
        if count == 2:
            even = first
        else:
            before = [part(x, 0, (count - 1) // 2) for x in odd]
            even = [ops.concat([x, y], axis) for x, y in zip(first, combine(before, [part(x, 2, None, 2) for x in parts]))]
        return [_interleaved(x, y, axis) for x, y in zip(even, odd)]

    turned = [ops.reverse(elem, [axis]) for elem in flat] if reverse else flat
    found = scanned(turned)
    return tree.pack_sequence_as(elems, [ops.reverse(x, [axis]) for x in found] if reverse else found)


def _interleaved(even, odd, axis):
    """even[0], odd[0], even[1] ... along the axis; the last one may be of `even`."""
    axis, pairs = axis % even.ndim, odd.shape[axis]
    both = ops.stack([slice_along_axis(even, 0, pairs, axis=axis), odd], axis + 1)
    sizes = list(odd.shape)
    sizes[axis] = 2 * pairs
    mixed = ops.reshape(both, sizes)
    return mixed if even.shape[axis] == pairs else ops.concat([mixed, slice_along_axis(even, pairs, None, axis=axis)], axis)


# ---- gradients and scopes

def custom_gradient(fun):
    return tf.custom_gradient(fun)


def remat(f):
    """f, whose gradient computes f again instead of keeping its values."""
    def recomputed(*args, **kwargs):
        places = [i for i, arg in enumerate(args) if is_tensor(arg) or isinstance(arg, KerasVariable)]
        if len(places) != 1:
            return f(*args, **kwargs)

        def of_one(x):
            return f(*args[:places[0]], x, *args[places[0] + 1:], **kwargs)
        return gradus.recompute_grad(of_one)(convert_to_tensor(args[places[0]]))
    return recomputed


def device_scope(device_name):
    """Runs a `with` block on this device. The engine has the processor's; others are refused as they are asked for."""
    kind = str(device_name).partition(":")[0].lower()
    if kind != "cpu":
        raise ValueError(f"there is no device {device_name!r} here: gradus.devices() lists them")
    return contextlib.nullcontext()
