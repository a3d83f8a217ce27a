"""tf.Module: an object whose Variables are found through its attributes."""
import contextlib
import functools
import re

from .. import Variable as _Variable, _native, nn
from . import nest


_Layer = nn.Module


def _contents(value):
    """The leaves of an attribute; of a container, those within."""
    return nest.flatten(value) if isinstance(value, (list, tuple, dict)) else [value]


class Module:
    """The base of objects with Variables: as attributes, in lists and dicts, and in Modules and layers of gradus.nn among
    their attributes."""

    def __init__(self, name=None):
        if name is not None and not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise ValueError(f"Module: a name is an identifier of Python, not {name!r}")
        self._name = name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(self).__name__).lower()

    @property
    def name(self):
        """The name; by default that of the class in lower case."""
        return self.__dict__.get("_name") or type(self).__name__.lower()

    @property
    def name_scope(self):
        """name_scope(self.name)."""
        return name_scope(self.name)

    @classmethod
    def with_name_scope(cls, method):
        """The method, within name_scope of the module."""
        @functools.wraps(method)
        def within(self, *arguments, **options):
            with self.name_scope:
                return method(self, *arguments, **options)
        return within

    def _found(self, wanted):
        """The objects of this module for which `wanted` is true, each once, in TensorFlow's order: attributes sorted by their
        names, then the contents of modules among them."""
        return tuple(self._walk(wanted, {id(self): self}))

    def _walk(self, wanted, seen):
        within = []
        for leaf in [leaf for key in sorted(self.__dict__) for leaf in _contents(self.__dict__[key])]:
            key = leaf.ref() if isinstance(leaf, _Variable) else id(leaf)
            if key in seen:
                continue
            seen[key] = leaf
            if wanted(leaf):
                yield leaf
            if isinstance(leaf, (Module, _Layer)):
                within.append(leaf)
        for each in within:
            yield from each._walk(wanted, seen) if isinstance(each, Module) else _of_layer(each, wanted, seen)

    @property
    def variables(self):
        """The Variables of this module and of the modules and layers of gradus.nn within."""
        return self._found(lambda leaf: isinstance(leaf, _Variable))

    @property
    def trainable_variables(self):
        """The trainable ones of variables."""
        return tuple(v for v in self.variables if v.trainable)

    @property
    def non_trainable_variables(self):
        """The ones of variables that are not trainable."""
        return tuple(v for v in self.variables if not v.trainable)

    @property
    def submodules(self):
        """The modules and layers within."""
        return self._found(lambda leaf: isinstance(leaf, (Module, _Layer)))


def _of_layer(layer, wanted, seen):
    """The Variables of a layer, which the engine lists, and the layers that are its attributes."""
    inner = [leaf for key in sorted(layer.__dict__) if not key.startswith("_") for leaf in _contents(layer.__dict__[key])
             if isinstance(leaf, (Module, _Layer))]
    for leaf in [*layer.variables, *inner]:
        key = leaf.ref() if isinstance(leaf, _Variable) else id(leaf)
        if key not in seen:
            seen[key] = leaf
            if wanted(leaf):
                yield leaf
            if isinstance(leaf, _Layer):
                yield from _of_layer(leaf, wanted, seen)


@contextlib.contextmanager
def name_scope(name):
    """A context whose ops belong to a layer of this name, which profiles and messages show. The names of Variables do not
    change."""
    with _native._NameScope(str(name)):
        yield str(name)
