"""Model.export: ONNX models, objects for programs in C, StableHLO. SavedModels need another backend."""
import functools
import os

import gradus
from keras.src import tree
from keras.src.backend.common import standardize_dtype
from keras.src.utils import io_utils

from keras_gradus.src.ops.core import with_open_sizes

OPSET = 23  # the operator set of ONNX that the engine writes


class GradusExportArchive:
    """Refuses: keras.Model.save writes files for every backend."""

    def track(self, resource):
        raise NotImplementedError(
            "`export_saved_model` only currently supports the tensorflow, jax and torch backends. With gradus, "
            "model.export(path, format=\"onnx\"), \"object\" and \"stablehlo\" write models, and model.save('model.keras') writes "
            "a file that each of those backends loads and exports")

    def add_endpoint(self, name, fn, input_signature=None, **kwargs):
        self.track(fn)

    def track_and_add_endpoint(self, name, resource, input_signature, **kwargs):
        self.track(resource)


# ---- the model as a function of tensors

def _specs(model, given):
    """The inputs as a list of arguments: nests of keras.InputSpecs. ValueError for a model that is not built."""
    from keras.src.export.export_utils import get_input_signature, make_input_spec
    if given is None:
        return list(get_input_signature(model))
    if not model.built:
        raise ValueError("The model provided has not yet been built. It must be built before export.")
    arguments = list(given) if isinstance(given, (list, tuple)) else [given]
    return [tree.map_structure(_input_spec(make_input_spec), argument) for argument in arguments]


def _input_spec(otherwise):
    from keras.src.layers import InputSpec

    def of(spec):
        if isinstance(spec, gradus.TensorSpec):
            return InputSpec(shape=spec.shape, dtype=standardize_dtype(spec.dtype))
        return otherwise(spec)
    return of


def _function(model, arguments):
    """The inference of the model on the tensors of its arguments, which gives a list of tensors."""
    def outputs(*tensors):
        given = tree.pack_sequence_as(arguments, list(tensors))
        return tree.flatten(model(*given, training=False))
    outputs.__name__ = model.name
    return outputs


def _known(model, arguments, batch_size):
    """The TensorSpecs with this number of rows. ValueError for another size that is open."""
    found = []
    for spec in tree.flatten(arguments):
        sizes = [batch_size if i == 0 and size is None else size for i, size in enumerate(spec.shape)]
        if None in sizes:
            raise ValueError(f"export: the input {spec.name or len(found)} of {model.name} has the shape {tuple(spec.shape)}, "
                             "and this format is for known sizes: give them by "
                             "input_signature=[keras.InputSpec(shape=..., dtype=...)]")
        found.append(gradus.TensorSpec(sizes, spec.dtype))
    return found


# ---- formats

def _onnx(model, filepath, arguments, opset_version=None):
    if opset_version not in (None, OPSET):
        raise ValueError(f"export: opset_version={opset_version}, but the engine writes operator set {OPSET}")
    specs = tree.flatten(arguments)
    names = [spec.name or f"input_{i}" for i, spec in enumerate(specs)]
    function = _function(model, arguments)

    def listed(*tensors):
        with with_open_sizes():
            return function(*tensors)
    try:
        gradus.onnx.export(filepath, listed, [gradus.TensorSpec(spec.shape, spec.dtype) for spec in specs], input_names=names,
                           one_batch=True)
    except gradus.errors.InvalidArgumentError as error:
        if all(None not in tuple(spec.shape) for spec in specs):
            raise
        raise ValueError(f"export: {model.name}: {error}\nThe inputs have open sizes, {[tuple(spec.shape) for spec in specs]}; "
                         "if that is why, input_signature=[keras.InputSpec(shape=..., dtype=...)] gives numbers") from error


def _object(model, filepath, arguments, batch_size=1, instruction_set="", target="", weights=None):
    step = gradus.function(_function(model, arguments), name=model.name, open_sizes=False)
    step.export_object(os.fspath(filepath).removesuffix(".o"), _known(model, arguments, batch_size),
                       instruction_set=instruction_set, target=target, weights=weights)


def _stablehlo(model, filepath, arguments, batch_size=1):
    step = gradus.function(_function(model, arguments), name=model.name, open_sizes=False)
    step.export_stablehlo(filepath, _known(model, arguments, batch_size))


FORMATS = {"onnx": _onnx, "object": _object, "stablehlo": _stablehlo}
OF_OTHERS = ("tf_saved_model", "openvino", "litert", "torch")  # Keras says what each of them needs


def exporting(theirs):
    """Model.export with the formats of this backend beside Keras's."""
    @functools.wraps(theirs)
    def export(self, filepath, format="tf_saved_model", verbose=None, input_signature=None, **kwargs):
        if format in FORMATS:
            FORMATS[format](self, filepath, _specs(self, input_signature), **kwargs)
            if verbose or verbose is None:
                io_utils.print_msg(f"Saved artifact at '{filepath}'.")
        elif format in OF_OTHERS:
            theirs(self, filepath, format, verbose, input_signature, **kwargs)
        else:
            raise ValueError(f"Unrecognized format={format}. Supported formats are: {list(FORMATS)}; with other backends: "
                             f"{list(OF_OTHERS)}.")
    return export
