"""TensorFlow's names on this engine.

    import gradus.tensorflow as tf

docs/python.md lists the differences. A name that does not exist here raises AttributeError, with the nearest name, or with the
reason for which it was left out.
"""
import importlib
import importlib.util

from .. import DType, Tensor, __version__, _native, bfloat16, float16, float32, float64, int8, int16, int32, int64, uint8, uint16
from .. import uint32, uint64
from . import (audio, bitwise, compat, config, containers, data, debugging, distribute, dtypes, errors, functions, gradients as _gradients,
               image, initializers, io, linalg, lookup, math, nest, nn, on_host, ragged, random, signal, strings, summary, tensors,
               train)
from ._listing import face
from .config import device
from .dtypes import as_dtype, double, half
from .left_out import missing
from .logging import get_logger
from .modules import Module, name_scope
from .ragged import RaggedTensor, RaggedTensorSpec
from .shapes import TensorShape, TensorSpec, type_spec_from_value
from .strings import as_string
from .texts import string

globals()["bool"] = dtypes.bool
for _module in (audio, bitwise, compat, config, containers, data, debugging, distribute, dtypes, errors, functions, _gradients, image,
                initializers, io, linalg, lookup, math, nest, nn, ragged, random, signal, strings, summary, tensors, train):
    face(_module)

_MATH = """abs acos acosh add add_n argmax argmin asin asinh atan atan2 atanh cos cosh cumsum divide equal exp floor greater
greater_equal less less_equal logical_and logical_not logical_or maximum minimum multiply negative not_equal pow reduce_all
reduce_any reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod reduce_sum round scalar_mul sigmoid sign sin sinh
sqrt square subtract tan tanh truediv"""
_TAKEN = [(math, _MATH.split()), (linalg, ["matmul", "norm", "tensordot", "einsum"]), (functions, functions.__all__),
          (_gradients, _gradients.__all__), (containers, containers.__all__), (initializers, initializers.__all__),
          (debugging, [name for name in vars(debugging) if name.startswith("assert_")] + ["Assert"]),
          (tensors, [name for name, value in vars(tensors).items()
                     if getattr(value, "__module__", "") == tensors.__name__])]
for _module, _names in _TAKEN:
    globals().update({name: getattr(_module, name) for name in _names if not name.startswith("_") and not name.endswith("_")})
for _name in on_host.NAMES:
    globals()[_name] = on_host.taking_strings(_name, globals()[_name])
math.equal, math.not_equal = globals()["equal"], globals()["not_equal"]
newaxis = None
version = type("version", (), {"VERSION": __version__, "__doc__": "The version of the library."})
executing_eagerly_outside_functions = functions.executing_eagerly
TypeSpec = _native.TensorSpec
_native._notice_repeated_softmax()

# Modules that hold other modules' parts; tf.audio and the like are names of TensorFlow.
_PARTS = ("containers", "examples", "face", "functions", "generators", "gradients", "importlib", "initializers", "left_out", "logging",
          "missing", "modules", "on_host", "shapes", "tensors", "text_datasets", "texts")
__all__ = [name for name in dir() if not name.startswith("_") and name not in _PARTS]


def __dir__():
    return __all__ + ["keras", "profiler", "test"]


def __getattr__(name):
    # tf.test, which needs unittest, when it is asked for
    if not name.startswith("_") and importlib.util.find_spec(f"{__name__}.{name}"):
        return importlib.import_module(f"{__name__}.{name}")
    raise missing(__name__, __all__, name)


for _module in (audio, bitwise, compat, config, data, debugging, distribute, dtypes, errors, image, io, linalg, lookup, math, nest,
                nn, ragged, random, signal, strings, summary, train):
    def _getattr(name, module=_module):
        raise missing(module.__name__, dir(module), name)
    _module.__getattr__ = _getattr
