"""Checks of assignments to attributes of the library's layers, optimizers, metrics and losses: a method or an option of the
constructor cannot be set, since the engine would never see the new value."""
import functools
import inspect

from . import _native

nn = _native.nn




@functools.lru_cache(maxsize=None)
def _options(made_of):
    """The names of the arguments of a class of the library."""
    try:
        return frozenset(inspect.signature(made_of).parameters)
    except (TypeError, ValueError):  # of several forms, or none
        return frozenset()


def _refusal(self, name):
    """The reason why an attribute of this name cannot be set; None if it can."""
    made_of = type(self)
    if made_of.__module__ not in ("gradus.nn", "gradus._native.nn"):
        return None  # a class of the program's own decides about its attributes
    known = getattr(made_of, name, None)
    if callable(known):
        setter = f"set_{name}"
        return f"is a method, which cannot be assigned" + (f": call {setter}(...)" if hasattr(made_of, setter) else "")
    if known is None and name in _options(made_of):
        return f"is an option of its constructor, which is read once: make another {made_of.__name__}({name}=...)"
    return None


def _set(self, name, value):
    refusal = None if name.startswith("_") else _refusal(self, name)
    if refusal:
        raise AttributeError(f"{type(self).__name__}: `{name}` {refusal}", name=name, obj=self)
    object.__setattr__(self, name, value)


def extend():
    """Adds the check to the library's classes."""
    for name in ("Module", "Optimizer", "Metric", "LossFunction", "Schedule", "Regularizer", "Initializer"):
        made_of = getattr(nn, name)
        made_of.__setattr__ = _set
