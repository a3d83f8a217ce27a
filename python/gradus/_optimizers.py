"""Methods and attributes of optimizers that Python adds."""
import weakref

from . import _native

nn = _native.nn

_apply, _build, _learning_rate = nn.Optimizer.apply_gradients, nn.Optimizer.build, nn.Optimizer.learning_rate
_trained = weakref.WeakKeyDictionary()  # the Variables for which an optimizer has state, in its order


def trained_by(optimizer):
    """The Variables for which the optimizer has state, in its order."""
    return list(_trained.get(optimizer, {}).values())


def note_trained(optimizer, variables):
    """Remembers that the optimizer has state for these Variables."""
    known = _trained.setdefault(optimizer, {})
    for each in variables:
        known.setdefault(each.ref(), each)


def build(self, variables):
    """Makes state for those of these Variables that have none."""
    variables = list(variables)
    _build(self, variables)
    note_trained(self, variables)


def apply_gradients(self, gradients, variables=None):
    """Updates Variables: one step. `gradients` are Gradients, as tape.gradient(loss, variables) gives them, pairs (gradient,
    Variable), or a list of gradients with the list `variables`. A gradient of None leaves its Variable as it is."""
    if variables is not None:
        gradients = zip(gradients, variables)
    gradients = getattr(gradients, "whole", None) or gradients
    if not isinstance(gradients, (_native._Gradients, _native.ClippedGradients)):
        pairs = list(gradients)
        gradients = _native._gradients_of_pairs(pairs)
        variables = [variable for gradient, variable in pairs if gradient is not None]
    else:
        variables = getattr(gradients, "variables", ())
    _apply(self, gradients)
    note_trained(self, variables)


class LearningRate(float):
    """The learning rate of the next step as a number. A call returns it, too, for code that is written as in C++; assign()
    sets the optimizer's rate."""

    def __new__(cls, value, optimizer):
        made = super().__new__(cls, value)
        made._optimizer = optimizer
        return made

    def __call__(self):
        return float(self)

    def __reduce__(self):
        return float, (float(self),)

    def numpy(self):
        """The number."""
        return float(self)

    def assign(self, value):
        """Sets the learning rate of the optimizer."""
        self._optimizer.learning_rate = value


def _get_learning_rate(self):
    """The learning rate of the next step. Set to a number, it takes effect at the next step, compiled or not; a schedule or
    a function of the step is an InvalidArgumentError after a compiled step was made."""
    return LearningRate(_learning_rate(self), self)


def _set_learning_rate(self, value):
    if isinstance(value, (_native.Tensor, _native.Variable)):
        value = value.item()
    self.set_learning_rate(value)


learning_rate = property(_get_learning_rate, _set_learning_rate)


def extend():
    """Adds these to gradus.nn.Optimizer."""
    nn.Optimizer.apply_gradients, nn.Optimizer.build, nn.Optimizer.learning_rate = apply_gradients, build, learning_rate
