"""The public names of a module of TensorFlow's names: dir() without the module's own imports, and TypeErrors that name the
nearest parameter for an unknown keyword."""
import types

from .._names import knows_keywords

# Names that a module takes from another one for its users, beside those that it defines.
TAKEN = {
    "data": """AUTOTUNE AutoShardPolicy Dataset DatasetSpec INFINITE_CARDINALITY Iterator Options TFRecordDataset TextLineDataset
        UNKNOWN_CARDINALITY experimental""",
    "dtypes": """DType bfloat16 bool cast double float16 float32 float64 half int16 int32 int64 int8 saturate_cast uint16 uint32
        uint64 uint8""",
    "compat": "bytes_or_text_types complex_types integral_types real_types",
    "config": "experimental experimental_run_functions_eagerly functions_run_eagerly optimizer run_functions_eagerly",
    "distribute": "cluster_resolver coordinator experimental",
    "image": "decode_image decode_jpeg decode_png",
    "io": "FixedLenFeature FixedLenSequenceFeature gfile parse_example parse_single_example",
    "linalg": "eye",
    "lookup": "experimental",
    "nest": "assert_same_structure flatten is_nested map_structure pack_sequence_as",
    "random": "Generator get_global_generator set_global_generator",
    "summary": "experimental",
    "train": "BytesList Example Feature Features FloatList Int64List",
    "debugging": "is_tensor",
}


def public_names(module):
    """The names of a module for its users."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    taken = TAKEN.get(module.__name__.rpartition(".")[2], "").split()
    return sorted(name for name, value in vars(module).items() if not name.startswith("_") and not name.endswith("_")
                  and (name in taken or (getattr(value, "__module__", "") == module.__name__ and name != "TABLE")))


def face(module):
    """Sets the dir() of a module, and knows_keywords for its functions; returns the names."""
    names = public_names(module)
    for name in names:
        value = getattr(module, name)
        if type(value) is types.FunctionType and value.__module__ == module.__name__:
            setattr(module, name, knows_keywords(value))
    module.__dir__ = lambda: names
    return names
