"""Runs a program of TensorFlow as it is, on gradus:  python -m gradus.run script.py arguments...

Its imports of tensorflow and of modules within give gradus.tensorflow; Keras, if it is installed, runs on gradus. `-m module`
runs a module.
"""
import importlib
import importlib.abc
import importlib.util
import os
import runpy
import sys

HERE = "gradus.tensorflow"
THERE = {"tensorflow": HERE, "tf_keras": f"{HERE}.keras"}


class Found(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds gradus' modules under the names of TensorFlow's."""

    def find_spec(self, fullname, path=None, target=None):
        top, _, rest = fullname.partition(".")
        if top not in THERE:
            return None
        name = THERE[top] + ("." + rest.removeprefix("python.") if rest else "")
        try:
            if importlib.util.find_spec(name) is None:
                return None
        except ModuleNotFoundError:
            return None
        spec = importlib.util.spec_from_loader(fullname, self, is_package=True)
        spec.loader_state = name
        return spec

    def create_module(self, spec):
        return importlib.import_module(spec.loader_state)

    def exec_module(self, module):
        # The module keeps its own name in its attributes, which the import has changed.
        module.__spec__ = importlib.util.find_spec(module.__name__) or module.__spec__


def install():
    """Makes imports of tensorflow give gradus' modules, and runs Keras on gradus. Modules that were imported before stay."""
    os.environ["KERAS_BACKEND"] = "gradus"
    importlib.import_module("keras_gradus")
    if not any(isinstance(each, Found) for each in sys.meta_path):
        sys.meta_path.insert(0, Found())


def main(arguments):
    """Runs the program that the arguments name; returns the exit status of a wrong call."""
    if not arguments or arguments[0] in ("-h", "--help") or arguments == ["-m"]:
        print(__doc__.strip(), file=sys.stdout if arguments and arguments[0] != "-m" else sys.stderr)
        return 0 if arguments and arguments[0] != "-m" else 2
    install()
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
        runpy.run_path(arguments[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
