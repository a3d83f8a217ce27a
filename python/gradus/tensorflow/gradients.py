"""GradientTape, custom gradients, clipping of several gradients."""
import enum
import inspect

from .. import GradientTape as _Tape, Loss, _native, float32, float64, ops, recompute_grad
from .._functions import one_tensor
from . import distribute, nest
from .tensors import convert_to_tensor, is_tensor

__all__ = ["GradientTape", "Gradients", "UnconnectedGradients", "clip_by_global_norm", "custom_gradient", "global_norm",
           "gradients", "grad_pass_through", "hessians", "recompute_grad"]


class UnconnectedGradients(str, enum.Enum):
    """The gradient of a source that the target does not depend on."""
    NONE = "none"
    ZERO = "zero"

    __str__ = str.__str__


class Gradients(list):
    """The gradients of a list of Variables, in their order. `whole` is the engine's Gradients with their weight, until an
    element is replaced."""

    def __init__(self, whole):
        super().__init__(whole)
        self._whole, self._made = whole, tuple(self)

    @property
    def whole(self):
        """gradus.Gradients, or None after a gradient was replaced."""
        same = len(self) == len(self._made) and all(a is b for a, b in zip(self, self._made))
        return self._whole if same else None


def _of_replica(target):
    """A tensor as the loss of a replica: the gradients of all replicas are added, as in TensorFlow. A Loss is of the batch."""
    if isinstance(target, Loss) or not is_tensor(target):
        return target
    tensor = convert_to_tensor(target)
    is_plain = tensor.ndim == 0 and tensor.dtype in (float32, float64)
    return Loss.total(tensor) if is_plain else Loss._of_replica(tensor)  # further ops would not be on the tape


def _or_zeros(found, unconnected, shape, source):
    """A matrix of derivatives; zeros in place of None if `unconnected` is zero."""
    if found is not None or str(unconnected) == "none":
        return found
    return ops.zeros(shape, source.dtype)


class GradientTape(_Tape):
    """Records the computations of this thread within `with`; gradients may be computed afterwards."""

    def gradient(self, target, sources, output_gradients=None, unconnected_gradients=UnconnectedGradients.NONE):
        """The gradients of the target, a tensor or a nest of them, by the sources, in their nest. None for a source that the
        target does not depend on, or zeros with UnconnectedGradients.ZERO. Elements of the target, and several targets, are
        summed."""
        if distribute.is_within_step() and output_gradients is None:
            target = nest.map_structure(_of_replica, target)
        found = super().gradient(target, sources, output_gradients, str(unconnected_gradients))
        return Gradients(found) if isinstance(found, _native.Gradients) else found

    def jacobian(self, target, sources, unconnected_gradients=UnconnectedGradients.NONE, parallel_iterations=None,
                 experimental_use_pfor=True):
        """The Jacobians of a tensor by the sources, in their nest, as [target..., source...]."""
        leaves = nest.flatten(sources)
        one = super().jacobian
        found = [_or_zeros(one(target, source, i + 1 < len(leaves), True), unconnected_gradients, (*target.shape, *source.shape),
                           source) for i, source in enumerate(leaves)]
        return nest.pack_sequence_as(sources, found) if nest.is_nested(sources) else found[0]

    def batch_jacobian(self, target, source, unconnected_gradients=UnconnectedGradients.NONE, parallel_iterations=None,
                       experimental_use_pfor=True):
        """The Jacobian of each example, as [n, target..., source...]."""
        found = super().batch_jacobian(target, source, False, True)
        return _or_zeros(found, unconnected_gradients, (*target.shape, *source.shape[1:]), source)


def _takes_variables(grad):
    try:
        parameters = inspect.signature(grad).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(p.name == "variables" for p in parameters)


def custom_gradient(f=None):
    """A function with the gradient that f defines. f(*tensors) returns (value, pullback). pullback(gradient by the value)
    returns the gradient by each tensor: one, or a sequence, with None for tensors without one. Arguments that are no tensors
    are passed on unchanged."""
    def with_gradient(*args, **kwargs):
        places = [i for i, arg in enumerate(args) if is_tensor(arg)]

        def of_tensors(*tensors):
            given = list(args)
            for place, tensor in zip(places, tensors):
                given[place] = tensor
            value, grad = f(*given, **kwargs)
            if _takes_variables(grad):
                raise NotImplementedError("custom_gradient: the gradient function takes `variables`, but gradients by "
                                          "Variables within f are not taken from it: pass v.value() as an argument of f")
            return one_tensor("custom_gradient", value), lambda dy: _at(grad(dy), places, len(args))
        return _native._with_gradient(of_tensors, [args[place] for place in places])
    with_gradient.__name__ = getattr(f, "__name__", "custom_gradient")
    with_gradient.__doc__ = getattr(f, "__doc__", None)
    with_gradient.__wrapped__ = f
    return with_gradient


def _at(given, places, count):
    """The gradients of the tensors, from gradients for all arguments or only for the tensors."""
    if not isinstance(given, (list, tuple)):
        return given
    return [given[place] for place in places] if len(given) == count else list(given)


def grad_pass_through(f):
    """f, whose gradient is that of the identity."""
    return custom_gradient(lambda x: (f(x), lambda dy: dy))


def global_norm(t_list, name=None):
    """The root of the sum of squares of all elements. None is skipped; ValueError if nothing else is in the list."""
    squares = [ops.reduce_sum(ops.square(t)) for t in t_list if t is not None]
    if not squares:
        raise ValueError("global_norm: there is no tensor in the list")
    return ops.sqrt(ops.add_n(squares))


def clip_by_global_norm(t_list, clip_norm, use_norm=None, name=None):
    """The tensors times one factor, so that their joint norm is at most clip_norm, and the norm before. If the norm is not
    finite, all become NaN."""
    norm = global_norm(t_list) if use_norm is None else convert_to_tensor(use_norm)
    factor = ops.divide(clip_norm, ops.maximum(norm, clip_norm))
    factor = ops.where(ops.is_finite(norm), factor, float("nan"))  # as in TensorFlow: one bad gradient shows in all
    return [None if t is None else ops.multiply(t, ops.cast(factor, t.dtype)) for t in t_list], norm


def gradients(*args, **kwargs):
    """RuntimeError: TensorFlow's function of graphs; use a GradientTape."""
    raise RuntimeError("tf.gradients: there are no graphs to ask: record with tf.GradientTape")


hessians = gradients
