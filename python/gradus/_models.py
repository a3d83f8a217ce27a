"""gradus.nn.Model: a model whose layers are attributes of an object."""
import inspect

from . import _native, nest

nn = _native.nn


def _takes_training(method):
    """True for a function with an argument `training`."""
    parameters = inspect.signature(method).parameters.values()
    return any(p.name == "training" or p.kind is p.VAR_KEYWORD for p in parameters)


def _walk(name, value, found):
    """Adds (name, layer, Variable or text) of a value, of a container those within. Other values are named with None."""
    if isinstance(value, (nn.Module, _native.Variable)):
        found.append((name, value))
    elif isinstance(value, (list, tuple)):
        for i, each in enumerate(value):
            _walk(f"{name}_{i}", each, found)
    elif isinstance(value, dict):
        for key, each in value.items():
            _walk(f"{name}_{key}", each, found)
    else:
        is_plain = isinstance(value, (bool, int, float, str, _native.DType))
        found.append((name, repr(value) if is_plain else None))


class Model(_native._Model):
    """A model of one's own: its layers and Variables are attributes, also in lists, tuples and dicts of them, and `call`
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
    belong to what a compiled function sees: a change of one is traced anew. InvalidArgumentError for a layer that runs
    within the call and is no attribute.
    """

    def __init__(self, name=None, policy=None):
        super().__init__()
        if name is not None:
            self.set_name(name)
        if policy is not None:
            self.set_policy(policy)

    def call(self, *inputs):
        """The result for these inputs; a model of one's own defines it."""
        raise NotImplementedError(f"{type(self).__name__} has no call(self, x), which computes its result")

    def __call__(self, *inputs, training=None, **options):
        tensors = nest.flatten(inputs)
        self._inputs = nest.map_structure(lambda _: None, inputs)
        self._options = options
        return self._run(self._run_on, tensors, training)

    def _run_on(self, tensors):
        """call() of the tensors in the nest of the last call; without one each is an argument."""
        nested = self.__dict__.get("_inputs")
        inputs = tensors if nested is None or len(nest.flatten(nested)) != len(tensors) else \
            nest.pack_sequence_as(nested, tensors)
        options = dict(self.__dict__.get("_options") or {})
        if _takes_training(type(self).call):
            options["training"] = _native._is_training()
        return self.call(*inputs, **options)

    def _fields(self):
        found = []
        for name, value in self.__dict__.items():
            if name not in ("_inputs", "_options", "_training"):
                _walk(name, value, found)
        return found

    def __repr__(self):
        return f"<{type(self).__name__} {self.name}>" if self.name else f"<{type(self).__name__}>"
