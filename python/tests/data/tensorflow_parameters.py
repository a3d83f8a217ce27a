"""Writes tensorflow_parameters.json: the functions of TensorFlow's modules with the names of their parameters.

    python tensorflow_parameters.py    (TensorFlow 2.21)
"""
import inspect
import json
import pathlib

import tensorflow as tf

MODULES = ("math", "nn", "linalg", "image", "signal", "random", "bitwise", "io", "strings", "debugging", "summary", "audio")


def parameters(function):
    """[name, ...] with "=" behind what may be left out; None if it cannot be read."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    return [name + ("" if p.default is p.empty else "=") for name, p in signature.parameters.items()
            if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def functions(module):
    found = {}
    for name in sorted(dir(module)):
        value = getattr(module, name)
        if name.startswith("_") or inspect.isclass(value) or inspect.ismodule(value) or not callable(value):
            continue
        names = parameters(value)
        if names is not None:
            found[name] = names
    return found


def main():
    modules = {name: functions(getattr(tf, name)) for name in MODULES}
    lines = [f'"{module}": {{\n' + ",\n".join(f'  "{name}": {json.dumps(names)}' for name, names in found.items()) + "\n}"
             for module, found in modules.items()]
    text = "{\n" + f'"version": "{tf.__version__}",\n' + ",\n".join(lines) + "\n}\n"
    pathlib.Path(__file__).with_suffix(".json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
