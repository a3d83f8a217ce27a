"""tf.debugging: assertions. In a traced function they are checked at every call: the first call that violates one raises."""
import ml_dtypes
import numpy as np

from .. import _native, nest, ops
from .tensors import convert_to_tensor, is_tensor

InvalidArgumentError = _native.InvalidArgumentError


def _require(holds, name, message, summarize, *tensors):
    """InvalidArgumentError, with the tensors, unless the boolean is true."""
    if holds:
        return
    shown = "; ".join("a value of the function" if t.is_symbolic else np.array2string(np.asarray(t.numpy()), threshold=10) for t in tensors)
    raise InvalidArgumentError(": ".join(part for part in (name, message, shown) if part))


def _pair(x, y):
    x = convert_to_tensor(x) if is_tensor(x) or not is_tensor(y) else convert_to_tensor(x, convert_to_tensor(y).dtype)
    return x, y if is_tensor(y) else convert_to_tensor(y, x.dtype)


def _comparison(name, compare, words):
    def check(x, y, message=None, summarize=None, name=None):
        x, y = _pair(x, y)
        _require(ops.reduce_all(compare(x, y)), check.__name__, message or f"x {words} y does not hold", summarize, x, y)
    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"InvalidArgumentError unless x {words} y for all elements."
    return check


assert_equal = _comparison("assert_equal", ops.equal, "==")
assert_less = _comparison("assert_less", ops.less, "<")
assert_less_equal = _comparison("assert_less_equal", ops.less_equal, "<=")
assert_greater = _comparison("assert_greater", ops.greater, ">")
assert_greater_equal = _comparison("assert_greater_equal", ops.greater_equal, ">=")


def assert_none_equal(x, y, summarize=None, message=None, name=None):
    """InvalidArgumentError unless x != y for all elements."""
    x, y = _pair(x, y)
    _require(ops.reduce_all(ops.not_equal(x, y)), "assert_none_equal", message or "x != y does not hold", summarize, x, y)


def _sign(name, compare, words):
    def check(x, message=None, summarize=None, name=None):
        x = convert_to_tensor(x)
        _require(ops.reduce_all(compare(x, 0)), check.__name__, message or f"x {words} does not hold", summarize, x)
    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"InvalidArgumentError unless x {words} for all elements."
    return check


assert_positive = _sign("assert_positive", ops.greater, "> 0")
assert_negative = _sign("assert_negative", ops.less, "< 0")
assert_non_negative = _sign("assert_non_negative", ops.greater_equal, ">= 0")
assert_non_positive = _sign("assert_non_positive", ops.less_equal, "<= 0")


def assert_near(x, y, rtol=None, atol=None, message=None, summarize=None, name=None):
    """InvalidArgumentError unless |x - y| <= atol + rtol * |y| for all elements; the default of both is 10 times the dtype's
    epsilon."""
    x, y = _pair(x, y)
    epsilon = 10 * float(ml_dtypes.finfo(x.dtype.numpy).eps)
    bound = (epsilon if atol is None else atol) + (epsilon if rtol is None else rtol) * ops.abs(y)
    _require(ops.reduce_all(ops.less_equal(ops.abs(x - y), bound)), "assert_near", message or "x and y differ", summarize, x, y)


def assert_all_finite(x, message=None, name=None):
    """The tensor; InvalidArgumentError if an element is NaN or infinite."""
    return check_numerics(x, message or "an element is not finite")


def check_numerics(tensor, message, name=None):
    """The tensor; InvalidArgumentError with this message if an element is NaN or infinite."""
    x = convert_to_tensor(tensor)
    if not ops.reduce_all(ops.is_finite(x)):
        raise InvalidArgumentError(f"check_numerics: {message}: an element is NaN or infinite")
    return x


def assert_rank(x, rank, message=None, name=None):
    """ValueError unless x has `rank` dimensions."""
    found = convert_to_tensor(x).ndim
    if found != int(rank):
        raise ValueError(f"assert_rank: {message + ': ' if message else ''}{found} dimensions, expected {int(rank)}")


def assert_rank_at_least(x, rank, message=None, name=None):
    """ValueError unless x has at least `rank` dimensions."""
    found = convert_to_tensor(x).ndim
    if found < int(rank):
        raise ValueError(f"assert_rank_at_least: {message + ': ' if message else ''}{found} dimensions, at least {int(rank)}")


def assert_rank_in(x, ranks, message=None, name=None):
    """ValueError unless the number of dimensions is one of these."""
    found = convert_to_tensor(x).ndim
    if found not in [int(rank) for rank in ranks]:
        raise ValueError(f"assert_rank_in: {message + ': ' if message else ''}{found} dimensions, expected one of {list(ranks)}")


def assert_shapes(shapes, data=None, summarize=None, message=None, name=None):
    """ValueError unless the tensors have these shapes: sizes, None for any, or letters, each of which stands for one size."""
    known = {}
    for tensor, wanted in shapes.items() if isinstance(shapes, dict) else shapes:
        found = tuple(convert_to_tensor(tensor).shape)
        wanted = (wanted,) if isinstance(wanted, (str, int)) and not isinstance(wanted, str) else tuple(wanted)
        fits = len(found) == len(wanted) and all(
            size is None or (known.setdefault(size, real) == real if isinstance(size, str) else size == real)
            for size, real in zip(wanted, found))
        if not fits:
            raise ValueError(f"assert_shapes: {message + ': ' if message else ''}a tensor of shape {found}, expected {wanted}"
                             + (f", where {known}" if known else ""))


def assert_type(tensor, tf_type, message=None, name=None):
    """TypeError unless the tensor has this dtype."""
    from .dtypes import as_dtype
    found = convert_to_tensor(tensor).dtype
    if found != as_dtype(tf_type):
        raise TypeError(f"assert_type: {message + ': ' if message else ''}{found.name}, expected {as_dtype(tf_type).name}")


def assert_scalar(tensor, message=None, name=None):
    """ValueError unless the tensor has no dimension."""
    assert_rank(tensor, 0, message)
    return tensor


def assert_integer(x, message=None, name=None):
    """TypeError unless the tensor holds integers."""
    if not convert_to_tensor(x).dtype.is_integer:
        raise TypeError(f"assert_integer: {message + ': ' if message else ''}{convert_to_tensor(x).dtype.name}")


def assert_same_float_dtype(tensors=None, dtype=None):
    """The common dtype of the tensors, float32 without any; ValueError unless it is one floating dtype."""
    found = {convert_to_tensor(t).dtype for t in nest.flatten(tensors or [])} | ({dtype} if dtype is not None else set())
    if len(found) > 1 or not all(each.is_floating for each in found):
        raise ValueError(f"assert_same_float_dtype: {sorted(each.name for each in found)}")
    return found.pop() if found else _native.float32


def Assert(condition, data, summarize=None, name=None):
    """InvalidArgumentError, with the data, unless all elements of the condition are true."""
    words = " ".join(each for each in data if isinstance(each, str))
    _require(ops.reduce_all(condition) if is_tensor(condition) else condition, "Assert", words, summarize,
             *[convert_to_tensor(each) for each in data if not isinstance(each, str)])


def is_numeric_tensor(tensor):
    """True for a tensor of numbers."""
    return is_tensor(tensor) and not convert_to_tensor(tensor).dtype.is_bool


def set_log_device_placement(enabled):
    """No effect: explain() of a tf.function lists the devices of ops."""


def disable_traceback_filtering():
    """No effect: tracebacks show each frame of the program."""


enable_traceback_filtering = disable_traceback_filtering
