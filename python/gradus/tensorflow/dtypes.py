"""tf.dtypes: the types of elements. They are those of gradus, with the attributes that TensorFlow's programs use."""
import ml_dtypes
import numpy as np

from .. import (DType, bfloat16, bool_, float16, float32, float64, int8, int16, int32, int64, ops, uint8, uint16, uint32,
                uint64)

double, half = float64, float16
globals()["bool"] = bool_
saturate_cast, cast = ops.saturate_cast, ops.cast

ALL = (bfloat16, bool_, float16, float32, float64, int8, int16, int32, int64, uint8, uint16, uint32, uint64)


def as_dtype(type_value):
    """The dtype for a name, a type of NumPy, or float, int, bool or str."""
    if isinstance(type_value, DType):
        return type_value
    if isinstance(type_value, str) and type_value != "string":
        return DType(type_value)
    is_text = type_value in (str, bytes, np.str_, np.bytes_, np.object_) if isinstance(type_value, type) else (
        type_value.kind in "SUO" if isinstance(type_value, np.dtype) else getattr(type_value, "name", type_value) == "string")
    if is_text:
        from .texts import string
        return string
    return DType(type_value)


def _limits(dtype):
    if dtype == bool_:
        return False, True
    if dtype.is_integer:
        return int(np.iinfo(dtype.numpy).min), int(np.iinfo(dtype.numpy).max)
    info = ml_dtypes.finfo(dtype.numpy)
    return float(info.min), float(info.max)  # numbers, which take the dtype of the tensor beside them


def _add(name, get, doc):
    get.__doc__ = doc
    setattr(DType, name, property(get))


_add("as_numpy_dtype", lambda self: self.numpy.type, "The scalar type of NumPy.")
_add("base_dtype", lambda self: self, "The dtype itself: there are no references.")
_add("real_dtype", lambda self: self, "The dtype itself: there are no complex ones.")
_add("is_bool", lambda self: self == bool_, "True for bool.")
_add("is_complex", lambda self: False, "False: there are no complex dtypes.")
_add("is_numeric", lambda self: self != bool_, "True for numbers: False for bool.")
_add("is_unsigned", lambda self: self.name.startswith("uint"), "True for integers without a sign.")
_add("is_numpy_compatible", lambda self: True, "True: NumPy has each of them.")
_add("min", lambda self: _limits(self)[0], "The least number.")
_add("max", lambda self: _limits(self)[1], "The largest number.")
_add("limits", _limits, "The least and the largest number.")
_add("size", lambda self: self.itemsize, "Bytes of one element.")


def _is_compatible_with(self, other):
    """True for the same dtype."""
    return self == as_dtype(other)


DType.is_compatible_with = _is_compatible_with
