"""tf.math: elementwise functions, reductions, segments. docs/python.md lists the differences."""
import numpy as np

from .. import ops
from .._native import float32, float64, int64
from ._tables import fill
from .dtypes import as_dtype
from .tensors import convert_to_tensor

TABLE = """
abs(x)
accumulate_n(inputs)
acos(x)
acosh(x)
add(x, y) = add(a, b)
add_n(inputs)
asin(x)
asinh(x)
atan(x)
atan2(y, x)
atanh(x)
bessel_i0(x)
bessel_i0e(x)
bessel_i1(x)
bessel_i1e(x)
betainc(a, b, x)
ceil(x)
cos(x)
cosh(x)
cumprod(x, axis=0, exclusive=False, reverse=False)
cumsum(x, axis=0, exclusive=False, reverse=False)
cumulative_logsumexp(x, axis=0, exclusive=False, reverse=False)
digamma(x)
divide_no_nan(x, y)
equal(x, y) = equal(a, b)
erf(x)
erfc(x)
erfcinv(x)
erfinv(x)
exp(x)
expm1(x)
floor(x)
floordiv(x, y) = floordiv(a, b)
floormod(x, y) = floormod(a, b)
greater(x, y) = greater(a, b)
greater_equal(x, y) = greater_equal(a, b)
igamma(a, x)
igammac(a, x)
in_top_k(targets, predictions, k)
invert_permutation(x)
is_finite(x)
is_inf(x)
is_nan(x)
is_non_decreasing(x)
is_strictly_increasing(x)
l2_normalize(x, axis=None, epsilon=1e-12)
lbeta(x)
less(x, y) = less(a, b)
less_equal(x, y) = less_equal(a, b)
lgamma(x)
log(x)
log1p(x)
log_sigmoid(x)
log_softmax(logits, axis=None) = log_softmax(x, axis)
logical_and(x, y) = logical_and(a, b)
logical_not(x)
logical_or(x, y) = logical_or(a, b)
logical_xor(x, y) = logical_xor(a, b)
maximum(x, y) = maximum(a, b)
minimum(x, y) = minimum(a, b)
mod(x, y) = mod(a, b)
multiply(x, y) = multiply(a, b)
multiply_no_nan(x, y)
ndtri(x) = ndtri(p)
negative(x)
nextafter(x1, x2) = nextafter(x, y)
not_equal(x, y) = not_equal(a, b)
polygamma(a, x)
polyval(coeffs, x) = polyval(coefficients, x)
pow(x, y) = pow(a, b)
reciprocal(x)
reciprocal_no_nan(x)
reduce_all(input_tensor, axis=None, keepdims=False) = reduce_all(x, axis, keepdims)
reduce_any(input_tensor, axis=None, keepdims=False) = reduce_any(x, axis, keepdims)
reduce_euclidean_norm(input_tensor, axis=None, keepdims=False) = reduce_euclidean_norm(x, axis, keepdims)
reduce_logsumexp(input_tensor, axis=None, keepdims=False) = reduce_logsumexp(x, axis, keepdims)
reduce_max(input_tensor, axis=None, keepdims=False) = reduce_max(x, axis, keepdims)
reduce_min(input_tensor, axis=None, keepdims=False) = reduce_min(x, axis, keepdims)
reduce_prod(input_tensor, axis=None, keepdims=False) = reduce_prod(x, axis, keepdims)
reduce_std(input_tensor, axis=None, keepdims=False) = reduce_std(x, axis, keepdims)
reduce_sum(input_tensor, axis=None, keepdims=False) = reduce_sum(x, axis, keepdims)
reduce_variance(input_tensor, axis=None, keepdims=False) = reduce_variance(x, axis, keepdims)
rint(x)
rsqrt(x)
segment_max(data, segment_ids) = segment_max(x, segments)
segment_mean(data, segment_ids) = segment_mean(x, segments)
segment_min(data, segment_ids) = segment_min(x, segments)
segment_prod(data, segment_ids) = segment_prod(x, segments)
segment_sum(data, segment_ids) = segment_sum(x, segments)
sigmoid(x)
sign(x)
sin(x)
sinh(x)
softmax(logits, axis=None) = softmax(x, axis)
softplus(features) = softplus(x)
softsign(features) = softsign(x)
sqrt(x)
square(x)
squared_difference(x, y) = squared_difference(a, b)
subtract(x, y) = subtract(a, b)
tan(x)
tanh(x)
unsorted_segment_max(data, segment_ids, num_segments) = unsorted_segment_max(x, segments, num_segments)
unsorted_segment_mean(data, segment_ids, num_segments) = unsorted_segment_mean(x, segments, num_segments)
unsorted_segment_min(data, segment_ids, num_segments) = unsorted_segment_min(x, segments, num_segments)
unsorted_segment_prod(data, segment_ids, num_segments) = unsorted_segment_prod(x, segments, num_segments)
unsorted_segment_sqrt_n(data, segment_ids, num_segments) = unsorted_segment_sqrt_n(x, segments, num_segments)
unsorted_segment_sum(data, segment_ids, num_segments) = unsorted_segment_sum(x, segments, num_segments)
xdivy(x, y)
xlog1py(x, y)
xlogy(x, y)
zero_fraction(value) = zero_fraction(x)
zeta(x, q)
"""
fill(globals(), TABLE)


def _is_integer(x):
    """True for a tensor of integers, or a number or list that becomes one."""
    if getattr(x, "dtype", None) is None:
        x = convert_to_tensor(x)
    return "int" in str(x.dtype)


def divide(x, y, name=None):
    """x / y. Integers are divided as float64, those of 8 and 16 bits as float32."""
    if _is_integer(x) and _is_integer(y):
        kinds = [convert_to_tensor(each).dtype.name for each in (x, y) if getattr(each, "dtype", None) is not None]
        kinds = kinds or [convert_to_tensor(x).dtype.name]
        dtype = float32 if all(kind in ("int8", "uint8", "int16", "uint16") for kind in kinds) else float64
        return ops.divide(ops.cast(x, dtype), ops.cast(y, dtype))
    return ops.divide(x, y)


truediv = divide


def reduce_mean(input_tensor, axis=None, keepdims=False, name=None):
    """The mean; of integers an integer, rounded towards zero, as in TensorFlow."""
    if isinstance(axis, (list, tuple)) and not axis:
        return convert_to_tensor(input_tensor)
    if not _is_integer(input_tensor):
        return ops.reduce_mean(input_tensor, axis=axis, keepdims=keepdims)
    input_tensor = convert_to_tensor(input_tensor)
    dtype = input_tensor.dtype
    return ops.cast(ops.trunc(ops.reduce_mean(ops.cast(input_tensor, float64), axis=axis, keepdims=keepdims)), dtype)


def argmax(input, axis=None, output_type=int64, name=None):
    """The index of the largest element along an axis, by default axis 0; the first of equal ones."""
    return ops.argmax(input, axis=0 if axis is None else axis, output_type=output_type)


def argmin(input, axis=None, output_type=int64, name=None):
    """The index of the smallest element along an axis, by default axis 0; the first of equal ones."""
    return ops.argmin(input, axis=0 if axis is None else axis, output_type=output_type)


def count_nonzero(input, axis=None, keepdims=False, dtype=int64, name=None):
    """The number of elements that are not zero."""
    if isinstance(axis, (list, tuple)) and not axis:
        return ops.cast(ops.not_equal(input, 0), as_dtype(dtype))
    return ops.cast(ops.count_nonzero(input, axis=axis, keepdims=bool(keepdims)), as_dtype(dtype))


def bincount(arr, weights=None, minlength=None, maxlength=None, dtype="int32", name=None, axis=None, binary_output=False):
    """The number of occurrences of each integer from 0 to the largest one, or the sum of the weights of its occurrences.

    The result has at least `minlength` and at most `maxlength` numbers; larger integers are left out. With axis=-1 each row, also of a RaggedTensor, is counted separately. With binary_output the result is 1 for integers that occur. In a traced function the largest integer is not known: the result has `minlength` numbers there, and a larger integer is an OutOfRangeError unless maxlength leaves it out. ValueError for negative integers.
    """
    ragged = arr if hasattr(arr, "ragged_rank") else None
    arr = convert_to_tensor(arr) if ragged is None else ragged.flat_values
    if ragged is not None and ragged.ndim != 2:
        raise ValueError(f"bincount: a RaggedTensor has 2 dimensions, not {ragged.ndim}")
    if axis not in (None, -1, 0 if arr.ndim == 1 else -1):
        raise ValueError(f"bincount: axis is None or -1, not {axis}")
    if binary_output and weights is not None:
        raise ValueError("bincount: binary_output and weights exclude each other")
    bins, rows = _bins(arr, minlength or 0, maxlength), [] if axis is None else list(arr.shape[:-1])
    first = ops.reshape(ops.range(_product(rows), dtype="int64") * bins, [*rows, 1]) if rows else 0
    if ragged is not None and axis is not None:
        rows, first = [len(ragged)], ragged.value_rowids() * bins
    places = ops.cast(arr, "int64")
    left_out = -1 if maxlength is not None else _product(rows) * bins
    places = ops.where(ops.less(places, bins), places + first, ops.cast(left_out, "int64"))
    counted = ops.cast(ops.ones_like(arr), as_dtype(dtype)) if weights is None else convert_to_tensor(weights)
    count = ops.unsorted_segment_max if binary_output else ops.unsorted_segment_sum
    found = count(ops.reshape(counted, [-1]), ops.reshape(places, [-1]), _product(rows) * bins)
    found = ops.maximum(found, ops.zeros_like(found)) if binary_output else found
    return ops.reshape(found, [*rows, bins])


def _bins(arr, least, most):
    """The number of bins for these integers."""
    if least == most or (least and arr.is_symbolic):
        return least if most is None else min(least, most)
    if arr.size == 0:
        return least
    if int(ops.reduce_min(arr)) < 0:
        raise ValueError("bincount: a number is negative")
    return min(max(least, int(ops.reduce_max(arr)) + 1), *([] if most is None else [most]), 2**31 - 1)


def _product(sizes):
    return int(np.prod(sizes, dtype=np.int64))


def round(x, name=None):
    """The nearest whole numbers, half to even. Integers stay as they are."""
    return convert_to_tensor(x) if _is_integer(x) else ops.round(x)


def confusion_matrix(labels, predictions, num_classes=None, weights=None, dtype="int32", name=None):
    """The numbers of examples with label i, a row, and prediction j, a column. The default num_classes is the largest class
    plus 1, which a traced function does not know."""
    if num_classes is None:
        num_classes = 1 + max(int(ops.reduce_max(labels)), int(ops.reduce_max(predictions)))
    return ops.cast(ops.confusion_matrix(labels, predictions, num_classes, weights), dtype)


def scalar_mul(scalar, x, name=None):
    """scalar * x."""
    return ops.scalar_mul(scalar, x)


def top_k(input, k=1, sorted=True, index_type="int32", name=None):
    """The k largest elements of the last axis, always in descending order, and their indices."""
    found = ops.top_k(input, int(k))
    return found._replace(indices=ops.cast(found.indices, index_type))
