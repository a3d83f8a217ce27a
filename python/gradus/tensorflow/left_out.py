"""Names of TensorFlow that are left out, with the reasons, for messages."""

NO_GRAPHS = "there are no graphs and sessions: programs run as they are written, and tf.function compiles them"
NO_RAGGED = "there are no ragged tensors: tf.data's padded_batch and masks take rows of several lengths"
NO_SPARSE = "there are no sparse tensors; embeddings have sparse gradients by themselves"
NO_COMPLEX = "there are no complex dtypes: tf.signal has pairs of real numbers in the last axis"
NO_STRINGS = "there are no tensors of strings: texts are Python's, and become numbers before they become tensors"
NO_QUANTIZED = "there are no quantized dtypes"
PYTHON = "Python's own lists and dicts do this"

REASONS = {
    **dict.fromkeys(["Graph", "Operation", "GraphKeys", "init_scope", "control_dependencies", "Session", "placeholder",
                     "import_graph_def", "graph_util", "get_default_graph", "compat", "global_variables_initializer",
                     "get_variable", "variable_scope"], NO_GRAPHS),
    **dict.fromkeys(["RaggedTensor", "RaggedTensorSpec", "ragged", "ragged_fill_empty_rows"], NO_RAGGED),
    **dict.fromkeys(["SparseTensor", "SparseTensorSpec", "sparse", "IndexedSlices", "IndexedSlicesSpec"], NO_SPARSE),
    **dict.fromkeys(["complex", "complex64", "complex128", "real", "imag", "conj", "angle"], NO_COMPLEX),
    **dict.fromkeys(["string", "strings", "as_string", "string_split"], NO_STRINGS),
    **dict.fromkeys(["quantization", "qint8", "qint16", "qint32", "quint8", "quint16"], NO_QUANTIZED),
    **dict.fromkeys(["lookup", "TensorArray", "TensorArraySpec"], PYTHON),
    "estimator": "tf.estimator has left TensorFlow, too: write a training loop",
    "feature_column": "layers of preprocessing do this",
    "lite": "models are exported as programs of C, see docs/export.md",
    "saved_model": "models are saved by gradus' own formats, see docs/saving.md",
    "tpu": "no TPU is driven from Python",
    "numpy": "NumPy's functions take tensors, and give arrays",
    "experimental": "experimental names change from release to release",
    "raw_ops": "each op has a public name",
    "autograph": "`if`, `while` and `and` on tensors work in tf.function without it",
}
