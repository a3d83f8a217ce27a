"""Gradus: gradients and compiled training steps, natively.

    import gradus

    w = gradus.Variable([1.0, 2.0])

    @gradus.function
    def step(x):
        with gradus.GradientTape() as tape:
            loss = ((x * w) ** 2).sum()
        w.assign_sub(0.1 * tape.gradient(loss, w))
        return loss
"""
import importlib

from . import _native, _training, data, errors, nest, onnx
from .datasets import Dataset
from ._native import (DType, Device, Extent, Function, GradientTape, Gradients, Loss, Tensor, TensorSpec, Variable,
                      batch_jacobian, bfloat16, bool_, clip_by_global_norm, cond, constant, default_device, device, devices,
                      float16, float32, float64, from_dlpack, hessian, hessian_vector_product, int8, int16, int32, int64,
                      jacobian, jvp, num_threads, scan, set_default_device, set_num_threads, set_seed, uint8, uint16, uint32,
                      uint64, value_and_gradient, vectorized_map, version, while_loop)
from ._functions import custom_gradient, explain, export_objects, function, load_object_state, recompute_grad
from ._names import attribute_error, tensor_attribute_error as _without
from ._sdk import cmake_prefix_path
from .profiling import ProfileReport, ProfileScope, profile

__version__ = version()
Tensor.__getattr__ = Variable.__getattr__ = _without
newaxis = None

__all__ = [name for name in dir() if not name.startswith("_") and name != "importlib"]

# Parts that are generated from the public headers.
for _part in ("ops", "nn", "random"):
    if hasattr(_native, _part):
        globals()[_part] = getattr(_native, _part)
        __all__.append(_part)
_training.extend()


def __getattr__(name):
    if name == "keras":  # when it is asked for: it loads Keras
        return importlib.import_module("gradus.keras")
    raise attribute_error(__name__, name, globals())
