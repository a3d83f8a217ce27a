"""The public face of a module of TensorFlow's names: dir() without what the module imports for itself, and calls that name the
nearest parameter where a keyword is unknown."""
import functools
import types

# Names that a module takes from another one for its users, beside those that it defines.
TAKEN = {
    "data": """AUTOTUNE AutoShardPolicy Dataset DatasetSpec INFINITE_CARDINALITY Iterator Options TFRecordDataset TextLineDataset
        UNKNOWN_CARDINALITY experimental""",
    "dtypes": """DType bfloat16 bool cast double float16 float32 float64 half int16 int32 int64 int8 saturate_cast uint16 uint32
        uint64 uint8""",
    "config": "experimental experimental_run_functions_eagerly functions_run_eagerly optimizer run_functions_eagerly",
    "distribute": "cluster_resolver coordinator experimental",
    "image": "decode_image decode_jpeg decode_png",
    "io": "FixedLenFeature FixedLenSequenceFeature gfile parse_example parse_single_example",
    "linalg": "eye",
    "nest": "assert_same_structure flatten is_nested map_structure pack_sequence_as",
    "random": "Generator get_global_generator set_global_generator",
    "summary": "experimental",
    "train": "BytesList Example Feature Features FloatList Int64List",
    "debugging": "is_tensor",
}


def public_names(module):
    """The names of a module that are meant for its users."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    taken = TAKEN.get(module.__name__.rpartition(".")[2], "").split()
    return sorted(name for name, value in vars(module).items() if not name.startswith("_") and not name.endswith("_")
                  and (name in taken or (getattr(value, "__module__", "") == module.__name__ and name != "TABLE")))


def told_keywords(function, label=None):
    """The function; a keyword that it does not have is a TypeError with the nearest that it has. `label`: its name there."""
    @functools.wraps(function)
    def told(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            code = function.__code__
            known = [name for name in code.co_varnames[:code.co_argcount + code.co_kwonlyargcount] if name not in ("self", "cls")]
            unknown = [name for name in kwargs if name not in known]
            if not unknown or error.__traceback__.tb_next is not None:  # raised by the function itself
                raise
            raise TypeError(f"{label or function.__qualname__} has no argument `{unknown[0]}`{_nearest(unknown[0], known)}") from None
    return told


def _nearest(name, known):
    import difflib  # only where a name is not known: imports take time
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5) or [each for each in known if each.startswith(name)]
    return f"; did you mean `{near[0]}`?" if near else f"; it has {', '.join(known)}"


def methods_told_keywords(kind):
    """Gives the methods of a class such calls."""
    for name, value in list(vars(kind).items()):
        bare = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
        if name.startswith("_") or type(bare) is not types.FunctionType or bare.__code__.co_flags & 0x08:
            continue
        told = told_keywords(bare)
        setattr(kind, name, told if bare is value else type(value)(told))


def face(module):
    """Gives a module its dir(), and its functions of Python calls that tell of unknown keywords."""
    names = public_names(module)
    for name in names:
        value = getattr(module, name)
        if type(value) is types.FunctionType and value.__module__ == module.__name__ and not value.__code__.co_flags & 0x08:
            setattr(module, name, told_keywords(value))
    module.__dir__ = lambda: names
    return names
