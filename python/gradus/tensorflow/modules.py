"""tf.Module: an object whose Variables are found through its attributes."""
import contextlib
import re

from .. import Variable as _Variable
from . import nest


def _contents(value):
    """Leaves of an attribute: of containers those within."""
    return nest.flatten(value) if isinstance(value, (list, tuple, dict)) else [value]


class Module:
    """The base of objects that have Variables, as attributes, in lists and dicts of them, and in Modules of theirs."""

    def __init__(self, name=None):
        if name is not None and not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise ValueError(f"Module: a name is an identifier of Python, not {name!r}")
        self._name = name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(self).__name__).lower()

    @property
    def name(self):
        """The name: that of the class in small letters unless one was given."""
        return self.__dict__.get("_name") or type(self).__name__.lower()

    @property
    def name_scope(self):
        """A `with` block of no effect: Variables have the names that they are given."""
        return contextlib.nullcontext(self.name)

    @classmethod
    def with_name_scope(cls, method):
        """The method."""
        return method

    def _walk(self, seen):
        """All that this module holds, by the names of attributes, each object once."""
        for key in sorted(self.__dict__):
            for leaf in _contents(self.__dict__[key]):
                if id(leaf) in seen:
                    continue
                seen[id(leaf)] = leaf
                yield leaf
                if isinstance(leaf, Module):
                    yield from leaf._walk(seen)

    def _found(self, is_wanted):
        return tuple(leaf for leaf in self._walk({id(self): self}) if is_wanted(leaf))

    @property
    def variables(self):
        """The Variables of this module and of those within."""
        own = [leaf for key in sorted(self.__dict__) for leaf in _contents(self.__dict__[key])
               if isinstance(leaf, _Variable)]
        nested = self._found(lambda leaf: isinstance(leaf, _Variable))
        return tuple({id(v): v for v in (*own, *nested)}.values())

    @property
    def trainable_variables(self):
        """Those that are trainable."""
        return tuple(v for v in self.variables if v.trainable)

    @property
    def non_trainable_variables(self):
        """Those that are not trainable."""
        return tuple(v for v in self.variables if not v.trainable)

    @property
    def submodules(self):
        """The modules within."""
        return self._found(lambda leaf: isinstance(leaf, Module))


def name_scope(name):
    """A `with` block of no effect: Variables have the names that they are given."""
    return contextlib.nullcontext(str(name))
