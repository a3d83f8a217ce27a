"""Runs the text of a module of Keras's TensorFlow backend, of the Keras that is installed, on this engine.

Keras's functions of NumPy's kind have their promotion of dtypes, their defaults and their messages written in that text.
It is executed as it is, in the namespace of a module of ours: `import tensorflow` gives tensorflow_names, and imports of
the TensorFlow backend give the modules of ours. So this backend has the functions of the Keras that is installed.
"""
import builtins
import importlib
import os
import sys

THEIRS, OURS = "keras.src.backend.tensorflow", "keras_gradus.src.ops"


def _import(name, globals=None, locals=None, fromlist=(), level=0):
    """Python's __import__ for that text."""
    if name == "tensorflow" or name.startswith("tensorflow."):
        names = importlib.import_module("keras_gradus.src.tensorflow_names")
        return names.at(name if fromlist else "tensorflow")
    if name == THEIRS or name.startswith(THEIRS + "."):
        return builtins.__import__(OURS + name.removeprefix(THEIRS), globals, locals, fromlist, level)
    return builtins.__import__(name, globals, locals, fromlist, level)


def run(namespace):
    """Executes the text of the module of this name in the namespace, a module's globals()."""
    name = namespace["__name__"].rpartition(".")[2]
    path = os.path.join(os.path.dirname(sys.modules["keras.src.backend"].__file__), "tensorflow", f"{name}.py")
    with open(path, encoding="utf-8") as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    namespace["__builtins__"] = {**vars(builtins), "__import__": _import}
    exec(code, namespace)
