"""gradus.nn.Model: a model whose layers are attributes of an object."""
import functools
import inspect

from . import _native, nest
from ._elements import map_element

nn = _native.nn


@functools.lru_cache(maxsize=1024)
def _takes_training(method):
    """True for a function with an argument `training`."""
    parameters = inspect.signature(method).parameters.values()
    return any(p.name == "training" or p.kind is p.VAR_KEYWORD for p in parameters)


def _walk(name, value, found):
    """Adds (name, value) for a layer or a Variable, (name, text) for a plain value, and these of all elements for a container.
    Other values become (name, None)."""
    if isinstance(value, (nn.Module, _native.Variable)):
        found.append((name, value))
    elif isinstance(value, (list, tuple)):
        for i, each in enumerate(value):
            _walk(f"{name}_{i}", each, found)
    elif isinstance(value, dict):
        for key, each in value.items():
            _walk(f"{name}_{key}", each, found)
    elif hasattr(type(value), "submodules") and hasattr(value, "__dict__"):  # tf.Module
        if all(known is not value for known, _ in found):
            found.append((value, None))
            for key in sorted(vars(value)):
                _walk(f"{name}_{key}", vars(value)[key], found)
    else:
        is_plain = isinstance(value, (bool, int, float, str, _native.DType))
        found.append((name, repr(value) if is_plain else None))


def _with_own_names(fields):
    """The fields with unique names: self.a = [layer] beside self.a_0 gets another number."""
    taken, made = {name for name, _ in fields}, []
    used = set()
    for name, value in fields:
        free, number = name, 0
        while free in used or free != name and free in taken:
            number += 1
            free = f"{name}_{number}"
        used.add(free)
        made.append((free, value))
    return made


class _Place:
    """Stands for a tensor in the nest of a model's inputs."""

    def __reduce__(self):
        return "_PLACE"

    def __deepcopy__(self, memo):
        return self


_PLACE = _Place()


def _is_tensor_like(leaf):
    return leaf is not None and not isinstance(leaf, (bool, str, bytes))


def _holds_tensors(value):
    return any(isinstance(leaf, (_native.Tensor, _native.Variable)) for leaf in nest.flatten(value))


def _of_list(value):
    if not isinstance(value, list):
        return value
    is_numbers = all(isinstance(leaf, (int, float)) for leaf in nest.flatten(value))
    return _native.constant(value) if is_numbers else [_with_tensors(each) for each in value]


def _with_tensors(value):
    """Inputs with lists of numbers as tensors; lists of tensors and arrays stay nests."""
    return map_element(_of_list, value)


class Model(_native._Model):
    """A model that a user writes: its layers and Variables are attributes, also in lists, tuples and dicts, and `call`
    computes its result.

        class Net(gradus.nn.Model):
            def __init__(self):
                super().__init__()
                self.hidden = gradus.nn.Dense(64, "relu")
                self.scores = gradus.nn.Dense(10)

            def call(self, x):
                return self.scores(self.hidden(x))

    It is called as a layer; the first call makes the Variables, which are named by the attributes ("hidden/kernel").
    `call` may take several tensors or nests of them, and `training`. Attributes that are numbers, texts or booleans
    are part of the signature of a compiled function: after a change it is traced again. InvalidArgumentError for a layer that
        runs within the call and is no attribute.
    """

    def __new__(cls, *args, **kwargs):
        made = super().__new__(cls)
        _native._Model.__init__(made)  # so that a user's class cannot forget it
        return made

    def __init__(self, name=None, policy=None):
        if name is not None:
            self.set_name(name)
        if policy is not None:
            self.set_policy(policy)

    def call(self, *inputs):
        """The result for these inputs. A subclass defines it; else NotImplementedError."""
        raise NotImplementedError(f"{type(self).__name__} has no call(self, x), which computes its result")

    def __call__(self, *inputs, training=None, **options):
        inputs = _with_tensors(inputs)
        leaves = nest.flatten(inputs)
        tensors = [leaf for leaf in leaves if _is_tensor_like(leaf)]
        kept = self._inputs = nest.map_structure(lambda leaf: _PLACE if _is_tensor_like(leaf) else leaf, inputs)
        self._options = {name: value for name, value in options.items() if not _holds_tensors(value)}
        return self._run(lambda given: self._called(kept, given, options), tensors, training)

    def _called(self, inputs, tensors, options):
        following = iter(tensors)
        inputs = nest.map_structure(lambda leaf: next(following) if leaf is _PLACE else leaf, inputs)
        if _takes_training(type(self).call):
            options = options | {"training": _native._is_training()}
        return self.call(*inputs, **options)

    def _run_on(self, tensors):
        """call() of the tensors in the nest of the last call; without a last call each tensor is an argument."""
        inputs = self.__dict__.get("_inputs")
        if inputs is None or sum(leaf is _PLACE for leaf in nest.flatten(inputs)) != len(tensors):
            inputs = (_PLACE,) * len(tensors)
        return self._called(inputs, tensors, self.__dict__.get("_options") or {})

    def _fields(self):
        found = []
        for name, value in self.__dict__.items():
            if name not in ("_inputs", "_options", "_training"):
                _walk(name, value, found)
        return _with_own_names([pair for pair in found if isinstance(pair[0], str)])

    def __reduce__(self):
        attributes = {name: value for name, value in self.__dict__.items() if name != "_training"}
        return _rebuilt_model, (type(self), self.name, attributes)

    def __repr__(self):
        return f"<{type(self).__name__} {self.name}>" if self.name else f"<{type(self).__name__}>"


# ---- pickles: a layer is made again by the arguments that it was made with, built, and given its values

def _rebuilt_model(made_of, name, attributes):
    model = made_of.__new__(made_of)
    Model.__init__(model, name or None)
    model.__dict__.update(attributes)
    return model


def _rebuilt(made_of, own, arguments, options, spec, values, trainable, attributes):
    layer = made_of.__new__(made_of)
    own.__init__(layer, *arguments, **options)
    layer.__dict__.update(attributes)
    if spec is not None:
        layer.build(spec)
    if not trainable:
        layer.trainable = False
    for variable, value in zip(layer.variables, values, strict=True):
        variable.assign(value)
    return layer


def reduce_layer(self):
    """The contents of a pickle of a layer of the library. TypeError for a layer that was built for several inputs."""
    own = next(each for each in type(self).__mro__ if each.__module__ == "gradus.nn")
    arguments, options = self._made_with
    spec = self._input_spec()
    values = [v.numpy() for v in self.variables] if self.built else []
    if values and spec is None:
        raise TypeError(f"{self.name}: a layer that was built for several inputs is not pickled: save its weights")
    attributes = {name: value for name, value in self.__dict__.items() if name not in ("_training", "_made_with", "_functions")}
    return _rebuilt, (type(self), own, arguments, options, spec, values, self.trainable, attributes)
