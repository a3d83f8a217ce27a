"""The TensorFlow that Keras's layers of preprocessing, helpers for data and callbacks ask for on the host, where none is
installed: gradus.tensorflow, and what Keras names beyond it."""
import importlib
import sys
import types

import gradus
import gradus.tensorflow as facade
from gradus import ops
from gradus.datasets import CallsPython
from gradus.tensorflow.strings import _crossed
from gradus.tensorflow.texts import StringTensor


class _TensorClass(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, (gradus.Tensor, gradus.Variable, StringTensor))


class Tensor(metaclass=_TensorClass):
    """The class of tensors of numbers and of strings."""


def _without_sparse(*given, **options):
    raise NotImplementedError("the backend gradus has no sparse tensors: leave out sparse=True")


class SparseTensor:
    """No tensor is one."""
    __new__ = _without_sparse


class CompositeTensor:
    """No tensor is one."""


class OptionalSpec:
    """The spec of an input that may be None."""

    def __init__(self, value_spec):
        self.value_spec = value_spec


def _cross_hashed(inputs, num_buckets=0, hash_key=None, name=None):
    """The buckets of what columns have in the same rows, as a tensor."""
    return _crossed([each if isinstance(each, StringTensor) else ops.cast(each, "int64") for each in inputs], num_buckets,
                    0xDECAFCAFFE if hash_key is None else hash_key)


def _to_dense(sp_input, default_value=None, validate_indices=True, name=None):
    """The tensor."""
    return sp_input


def required_space_to_batch_paddings(input_shape, block_shape, base_paddings=None, name=None):
    """How much is filled in behind each size, and cut again, so that blocks divide it: [n, 2] each."""
    sizes, blocks = ([int(n) for n in each] for each in (input_shape, block_shape))
    fill = [-size % block for size, block in zip(sizes, blocks)]
    return [[0, n] for n in fill], [[0, n] for n in fill]


def where(condition, x=None, y=None, name=None):
    """tf.where. Places alone, by which tables find words that they do not know, need values, so that a map goes to Python."""
    if x is None and y is None and getattr(condition, "is_symbolic", False):
        raise CallsPython("where: the places follow from values, which are not known in a traced function")
    return facade.where(condition, x, y)


class _Sparse(types.SimpleNamespace):
    """tf.sparse, whose other functions are refused."""

    def __getattr__(self, name):
        return _without_sparse


class _Host(types.ModuleType):
    """gradus.tensorflow with further names."""

    def __getattr__(self, name):
        return getattr(facade, name)


names = _Host("keras_gradus.host_names.names")
vars(names).update(
    Tensor=Tensor, where=where, SparseTensor=SparseTensor, OptionalSpec=OptionalSpec,
    sparse=_Sparse(cross_hashed=_cross_hashed, to_dense=_to_dense),
    required_space_to_batch_paddings=required_space_to_batch_paddings,
    __internal__=types.SimpleNamespace(CompositeTensor=CompositeTensor))


class _Backend(types.ModuleType):
    """This backend, as layers on the host ask for it under the name of TensorFlow's: by that ending of its name Keras chooses
    the bincounts of tf.math, which ragged rows have."""
    __path__ = []

    def __getattr__(self, name):
        return getattr(importlib.import_module("keras_gradus.src"), name)


backend = _Backend("keras_gradus.host_names.tensorflow")


# ---- modules of Keras

def use_for(lazy):
    """Lets a LazyModule of Keras be these names."""
    def initialize():
        lazy.module = names
    lazy.initialize = initialize


def know_datasets(module):
    """Lets Keras's helpers for data sets know those of this engine. Older ones ask for tf.data.Dataset."""
    theirs = getattr(module, "is_tf_dataset", None)
    if theirs is None:
        return

    def is_tf_dataset(dataset):
        return isinstance(dataset, gradus.Dataset) or theirs(dataset)
    module.is_tf_dataset = is_tf_dataset


def keras_model_summary(name, data, step=None):
    """Writes a model of Keras, as JSON, for TensorBoard's page of graphs. True if it was written."""
    try:
        described = data.to_json()
    except Exception as error:  # a model without a description trains all the same
        import warnings
        warnings.warn(f"TensorBoard: the model has no JSON, so that its graph is not written: {error}")
        return False
    return facade.summary._text(name, described, step, "graph_keras_model", "1")


def write_summaries(module):
    """Lets Keras's TensorBoard write event files by gradus.tensorflow.summary."""
    module.TensorBoard.summary = property(lambda self: facade.summary)
    module.keras_model_summary = keras_model_summary


sys.modules[names.__name__] = names
