"""Names of TensorFlow that are left out, with the reasons, for messages."""
import sys
import types

from .._names import attribute_error

NO_GRAPHS = "there are no graphs and sessions: programs run as they are written, and tf.function compiles them"
NO_RAGGED = "tf.RaggedTensor, on the host, has from_row_lengths, to_tensor and others; tf.data's padded_batch and masks take rows of \
several lengths"
NO_SPARSE = "there are no sparse tensors; embeddings have sparse gradients by themselves"
NO_COMPLEX = "there are no complex dtypes: tf.signal has pairs of real numbers in the last axis"
NO_QUANTIZED = "there are no quantized dtypes"
PYTHON = "Python's own lists and dicts do this"

REASONS = {
    **dict.fromkeys(["Graph", "Operation", "GraphKeys", "Session", "placeholder",
                     "import_graph_def", "graph_util", "get_default_graph", "v1", "global_variables_initializer",
                     "get_variable", "variable_scope"], NO_GRAPHS),
    **dict.fromkeys(["ragged_fill_empty_rows"], NO_RAGGED),
    **dict.fromkeys(["SparseTensor", "SparseTensorSpec", "sparse", "IndexedSlicesSpec", "VarLenFeature",
                     "SparseFeature"], NO_SPARSE),
    **dict.fromkeys(["complex", "complex64", "complex128", "real", "imag", "conj", "angle"], NO_COMPLEX),
    "string_split": "tf.strings.split splits one string",
    **dict.fromkeys(["quantization", "qint8", "qint16", "qint32", "quint8", "quint16"], NO_QUANTIZED),
    "DenseHashTable": "tf.lookup.experimental.MutableHashTable does this",
    "RaggedFeature": NO_RAGGED,
    "client": "profiles are taken by the process itself: tf.profiler.experimental.start",
    "server": "profiles are taken by the process itself: tf.profiler.experimental.start",
    "audio": "event files have numbers, histograms, images and texts",
    "trace_on": "tf.function's explain() shows the program",
    "trace_export": "tf.function's explain() shows the program",
    "Server": "every process runs the program: in a parameter server ParameterServerStrategy serves",
    "CentralStorageStrategy": "Variables are the same on all replicas: MirroredStrategy",
    "TPUStrategy": "no TPU is driven from Python",
    "encode_jpeg": "images are written as PNG: tf.io.encode_png",
    "decode_gif": "images are read from JPEG and PNG",
    "decode_bmp": "images are read from JPEG and PNG",
    "make_csv_dataset": "read the file by NumPy or pandas, and give arrays to from_tensor_slices",
    "CsvDataset": "read the file by NumPy or pandas, and give arrays to from_tensor_slices",
    "estimator": "tf.estimator has left TensorFlow, too: write a training loop",
    "feature_column": "layers of preprocessing do this",
    "lite": "the command `gradus compile` makes a program of C of a model, docs/ahead-of-time.md",
    "saved_model": "weights are saved by model.save_weights, a Sequential by model.save('name.keras'), trainings by checkpoints",
    "tpu": "no TPU is driven from Python",
    "numpy": "NumPy's functions take tensors, and give arrays",
    "experimental": "experimental names change from release to release; tensors of others come by gradus.from_dlpack(x)",
    "dlpack": "gradus.from_dlpack(x) takes a tensor of another library, and tensors have __dlpack__",
    "autodiff": "GradientTape gives gradients; gradus.jvp gives the derivative along a direction",
    "raw_ops": "each op has a public name",
    "autograph": "`if`, `while` and `and` on tensors work in tf.function without it",
}


def _elsewhere(module, name):
    """The module of TensorFlow's names that has this one, as a sentence; None if there is none."""
    top = __name__.rpartition(".")[0]
    for whole, other in list(sys.modules.items()):
        if whole.startswith(top + ".") and whole != module and other is not None and name in dir(other) and "_" != name[0]:
            said = whole.removeprefix(top + ".")
            if "__dir__" in vars(other) and said in dir(sys.modules[top]):
                return f"it is tf.{said}.{name}"
    return f"it is tf.{name}" if module != top and name in dir(sys.modules[top]) else None


def missing(module, names, name):
    """The error for a name that a module does not have: with the reason, or with the nearest name."""
    reason = REASONS.get(name) or _elsewhere(module, name)
    if reason is None:
        return attribute_error(module, name, names)
    return AttributeError(f"module {module!r} has no attribute {name!r}: {reason}", name=name)


class Names(types.SimpleNamespace):
    """Names within a module, such as `experimental`."""

    def __init__(self, module, **names):
        super().__init__(**names)
        self.__dict__["__name__"] = module

    def __getattr__(self, name):
        raise missing(self.__dict__.get("__name__", "?"), list(self.__dict__), name)
