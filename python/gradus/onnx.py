"""ONNX: models that are read as callables, and functions that are written as files."""
from . import _native

__all__ = ["Model", "export", "load"]


class Model:
    """A model of an ONNX file. Its floating initializers are Variables, so it can be trained and traced."""

    def __init__(self, loaded):
        self._loaded = loaded

    @property
    def inputs(self):
        """The inputs of a call: tuples (name, shape, dtype). None stands for an open size, or for a shape of any rank."""
        return self._loaded.inputs

    @property
    def outputs(self):
        """The outputs, described as inputs are."""
        return self._loaded.outputs

    @property
    def variables(self):
        """The floating initializers as Variables."""
        return self._loaded.variables

    @property
    def trainable_variables(self):
        """The trainable ones of variables."""
        return self._loaded.trainable_variables

    def __call__(self, *inputs, **named):
        """The list of outputs. Give one tensor for each input, in order, or all by the inputs' names (else TypeError)."""
        if not named:
            return self._loaded.run(list(inputs))
        names = [name for name, _, _ in self.inputs]
        if inputs or set(named) != set(names):
            raise TypeError(f"a model with the inputs {names} is given {len(inputs)} tensors and {sorted(named)}: give all by "
                            "their places, or all by their names")
        return self._loaded.run([named[name] for name in names])

    def __repr__(self):
        return f"<gradus.onnx.Model of {[name for name, _, _ in self.inputs]}>"


def load(file, *, trainable=True):
    """The model of a file; `trainable` is that of its Variables. UnavailableError if it cannot be read, DataLossError if it is
    broken, OpError, with all names, for ops that the library does not have."""
    return Model(_native._load_onnx(file, trainable))


def export(file, f, input_signature, *, input_names=(), output_names=(), one_batch=False):
    """Writes f, a function of tensors that gives a tensor or a list of them, for tensors of these TensorSpecs. None leaves a
    size open; one_batch makes all open first sizes equal. Variables that f reads become initializers. InvalidArgumentError,
    with the op's name, for an op without a form in ONNX. The file appears whole or not at all."""
    def listed(*tensors):
        found = f(*tensors)
        return list(found) if isinstance(found, (list, tuple)) else [found]
    _native._export_onnx(file, listed, list(input_signature), list(input_names), list(output_names), one_batch)
