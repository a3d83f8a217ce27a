"""Functions of the library: ops, random numbers, losses, initializers, callbacks. Each becomes a function of a module."""
import dataclasses

import docstrings
import emit

# Where the functions of a header, or of a namespace, stand in Python.
MODULES = {"random": "random", "initializers": "nn.initializers", "regularizers": "nn.regularizers",
           "constraints": "nn.constraints", "merging": "nn.merging"}
ROOMS = {"gradus/ops/": "ops", "gradus/nn/": "nn", "gradus/train/callback": "nn", "gradus/train/tensorboard": "nn"}


@dataclasses.dataclass
class Bound:
    """A function as Python has it."""
    name: str
    full_name: str
    module: str
    forms: list
    docs: str
    reasons: list  # why some overloads are no forms

    @property
    def weight(self):
        """Its share of the time to compile."""
        return 1 + sum(2 + len(form.slots) for form in self.forms)

    def lines(self):
        scope = self.full_name.rpartition("::")[0]
        return emit.callable_of(self.full_name, self.forms, f"gradus::{self.full_name}", scope)

    def row(self):
        return emit.row("function_entry", self.full_name, self.docs)


def module_of(function):
    """The module of Python for a function; None for those that the hand-written parts bind."""
    if function.scope:
        return MODULES.get(function.scope)
    return next((m for overload in function.overloads for m in [room_of(overload)] if m), None)


def room_of(overload):
    return next((module for start, module in ROOMS.items() if overload.header.startswith(start)), None)


def bound_functions(library, maker):
    """(all that have a form, {full name: why it has none})."""
    bound, left_out = [], {}
    for full_name, function in library.functions.items():
        module = module_of(function)
        if module is None:
            continue
        overloads = [o for o in function.overloads if function.scope or room_of(o) == module]
        forms, reasons = maker.forms(overloads)
        if not forms:
            left_out[full_name] = "; ".join(sorted(set(reasons)))
            continue
        bound.append(Bound(function.name, full_name, module, forms, docstrings.docstring(function.name, forms), reasons))
    return bound, left_out
