"""Tables of TensorFlow's functions: a row has the function as TensorFlow documents it, and Gradus's with its names.

    reduce_sum(input_tensor, axis=None, keepdims=False) = reduce_sum(x, axis, keepdims)

The parameters correspond by position; a further one, `name=None`, is accepted and ignored, as is `-`. A row without `=` has the same names on both sides. Equal first names cost no look-up in a call.
"""
import re

from .. import _native

ROW = re.compile(r"(\w+)\((.*?)\)(?: = (?:(\w+)\.)?(\w+)\((.*)\))?$")


def names_of(parameters):
    """[(name, with its default)] of the text between brackets."""
    parts = re.findall(r"[\w*-]+(?:=(?:\([^)]*\)|[^,()]+))?", parameters)
    return [(part.split("=")[0], part) for part in parts]


def own_order(function):
    """The names of a function's positional parameters, those before `*`. inspect.signature gives the same, but would take a
    third of the time of an import."""
    names = []
    for part, _ in names_of(function.__text_signature__[1:-1]):
        if part == "*":
            break
        names.append(part)
    return names


def made(row, modules, module):
    """The function of a row."""
    match = ROW.match(row)
    if not match:
        raise ValueError(f"no row of a table: {row!r}")
    name, parameters, room, target, others = match.groups()
    function = getattr(modules[room or "ops"], target or name)
    theirs = names_of(parameters)
    ours = [n for n, _ in names_of(others)] if others is not None else [n for n, _ in theirs]
    pairs = [(their, "" if our == "-" else our) for (their, _), our in zip(theirs, ours, strict=True)] + [("name", "")]
    order = own_order(function)
    by_place = 0
    while by_place < min(len(pairs), len(order)) and pairs[by_place][1] == order[by_place]:
        by_place += 1
    signature = ", ".join([text for _, text in theirs] + ["name=None"])
    docs = f"{name}({signature})\n--\n\n{function.__doc__}"
    return name, _native._renamed(name, function, pairs, by_place, docs, module)


def fill(namespace, table):
    """Adds the functions of a table to a module's names."""
    modules = {"ops": _native.ops, "random": _native.random}
    for line in table.strip().splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            name, function = made(line.strip(), modules, namespace["__name__"])
            namespace[name] = function
