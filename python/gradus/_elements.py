"""Elements of data sets: nests of tuples and dicts, in which a list is a tensor, and their descriptions."""
import contextlib

import numpy as np

from . import _native, nest
from ._native import TensorSpec, constant


def is_tensor(value):
    return isinstance(value, (_native.Tensor, _native.Variable, _native.Loss))


# ---- elements

def map_element(leaf, value):
    """An element with leaf(value) in place of each value in its tuples and dicts, which alone are nests in tf.data."""
    if isinstance(value, dict):
        return {key: map_element(leaf, each) for key, each in value.items()}
    if isinstance(value, tuple):
        made = [map_element(leaf, each) for each in value]
        return value._make(made) if hasattr(value, "_fields") else tuple(made)
    return leaf(value)


class OnHost(TypeError):
    """The error for strings or ragged rows in place of a tensor."""


def as_tensor(value):
    """A leaf of an element as a tensor; a list becomes one. OnHost for values that exist only on the host."""
    if isinstance(value, _native.Tensor):
        return value
    if hasattr(value, "dtype") and getattr(value, "is_symbolic", None) is False and not is_tensor(value):
        raise OnHost(f"no tensor: an object of the class {type(value).__name__}: strings and ragged rows are values of the host, "
                     "in no traced function")
    return constant(value)


def _nested(value):
    return map_element(as_tensor, value)


def _fields(element):
    """The structure of an element, and its tensors."""
    tensors = _nested(element)
    return nest.map_structure(lambda _: None, tensors), nest.flatten(tensors)


class _Function:
    """A function of an element as a function of its fields, called within context(). `structure`, the nest of its result, is
    known after the first call."""

    def __init__(self, f, of, spreads=True, context=contextlib.nullcontext):
        self.f, self.of, self.spreads, self.context, self.structure = f, of, spreads, context, None

    def call(self, fields):
        element = nest.pack_sequence_as(self.of, fields)
        return self.f(*element) if self.spreads and isinstance(element, tuple) else self.f(element)

    def __call__(self, fields):
        with self.context():
            self.structure, tensors = _fields(self.call(fields))
        return tensors


def _scalar(value, name):
    if is_tensor(value):
        value = value.item()
    if isinstance(value, (bool, str, bytes)) or not hasattr(type(value), "__int__") or int(value) != value:
        raise ValueError(f"{name} is a whole number, not {value!r}")
    return int(value)


# ---- descriptions

def _numbers(values):
    """The numbers of a nest, a list or a single number, one for each field."""
    if values is None:
        return []
    if is_tensor(values) or isinstance(values, np.ndarray):
        values = np.atleast_1d(np.asarray(values)).tolist()
    return [float(0 if n is None else n.item() if is_tensor(n) else n) for n in nest.flatten(values)]


def _collect_shapes(shapes, structure, found):
    if not nest.is_nested(structure):
        found.append([None if n == -1 else n for n in shapes])
        return
    keys = sorted(structure) if isinstance(structure, dict) else range(len(structure))
    for key in keys:
        _collect_shapes(shapes[key], structure[key], found)


def _signature(types_, shapes):
    """The TensorSpecs of nests of dtypes and shapes, the older arguments of from_generator."""
    if types_ is None:
        raise TypeError("from_generator: output_signature is needed, a nest of TensorSpecs")
    if shapes is None:
        raise TypeError("from_generator: output_shapes is needed beside output_types; output_signature says both")
    if not nest.is_nested(types_):
        return TensorSpec(shapes, types_)
    found = []
    _collect_shapes(shapes, nest.map_structure(lambda _: None, types_), found)
    return nest.pack_sequence_as(types_, [TensorSpec(s, t) for s, t in zip(found, nest.flatten(types_))])
