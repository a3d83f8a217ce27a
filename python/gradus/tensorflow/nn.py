"""tf.nn: activations, crossentropies, convolutions, pools, normalization."""
from .. import _native, ops
from .._native import float32
from ._tables import fill

TABLE = """
atrous_conv2d(value, filters, rate, padding)
bias_add(value, bias)
crelu(features, axis=-1) = crelu(x, axis)
elu(features) = elu(x)
embedding_lookup(params, ids, max_norm=None)
in_top_k(targets, predictions, k)
l2_loss(t) = l2_loss(x)
l2_normalize(x, axis=None, epsilon=1e-12)
leaky_relu(features, alpha=0.2) = leaky_relu(x, alpha)
log_poisson_loss(targets, log_input, compute_full_loss=False)
log_softmax(logits, axis=None) = log_softmax(x, axis)
relu(features) = relu(x)
relu6(features) = relu6(x)
selu(features) = selu(x)
sigmoid(x)
silu(features, beta=1.0) = silu(x, beta)
softmax(logits, axis=None) = softmax(x, axis)
softplus(features) = softplus(x)
softsign(features) = softsign(x)
sparse_softmax_cross_entropy_with_logits(labels, logits)
swish(features, beta=1.0) = silu(x, beta)
tanh(x)
weighted_cross_entropy_with_logits(labels, logits, pos_weight)
weighted_moments(x, axes, frequency_weights, keepdims=False) = weighted_moments(x, axis, weights, keepdims)
zero_fraction(value) = zero_fraction(x)
sigmoid_cross_entropy_with_logits(labels=None, logits=None)
softmax_cross_entropy_with_logits(labels, logits, axis=-1)
"""
fill(globals(), TABLE)


def _inner(sizes, data_format, rank):
    """Sizes of the spatial axes, which TensorFlow takes alone, as one number, or with 1 for batch and channels."""
    if isinstance(sizes, int):
        return [sizes] * rank
    sizes = list(sizes)
    if len(sizes) == rank + 2:
        sizes = sizes[2:] if data_format and data_format.startswith("NC") else sizes[1:-1]
    return sizes * rank if len(sizes) == 1 else sizes


def _pad(padding):
    """The option of a padding by name, or by pairs for all axes or the spatial ones."""
    if isinstance(padding, str):
        return {"padding": padding}
    return {"paddings": [tuple(pair) for pair in padding[1:-1]]}


def _channels_last(data_format, name):
    if data_format and data_format.startswith("NC"):
        raise ValueError(f"{name}: channels stand last, as in NHWC, not {data_format}: transpose the tensor")


def _convolution(label, op, rank):
    def convolution(input, filters, strides, padding, data_format=None, dilations=None, name=None):
        _channels_last(data_format, convolution.__name__)
        return op(input, filters, strides=_inner(strides, data_format, rank), **_pad(padding),
                  dilations=None if dilations is None else _inner(dilations, data_format, rank))
    convolution.__name__ = convolution.__qualname__ = label
    convolution.__doc__ = op.__doc__
    return convolution


conv2d = _convolution("conv2d", ops.conv2d, 2)
conv3d = _convolution("conv3d", ops.conv3d, 3)


def conv1d(input, filters, stride, padding, data_format="NWC", dilations=None, name=None):
    """Convolution of sequences [batch, steps, channels]."""
    _channels_last(data_format, "conv1d")
    return ops.conv1d(input, filters, strides=_inner(stride, data_format, 1), **_pad(padding), dilations=dilations)


def _transposed(label, op, rank):
    def convolution(input, filters, output_shape, strides, padding="SAME", data_format=None, dilations=None, name=None):
        _channels_last(data_format, convolution.__name__)
        sizes = None if output_shape is None else [int(n) for n in _inner(list(output_shape), data_format, rank)]
        return op(input, filters, output_shape=sizes, strides=_inner(strides, data_format, rank), **_pad(padding),
                  dilations=None if dilations is None else _inner(dilations, data_format, rank))
    convolution.__name__ = convolution.__qualname__ = label
    convolution.__doc__ = op.__doc__
    return convolution


conv1d_transpose, conv2d_transpose, conv3d_transpose = (
    _transposed(f"conv{n}d_transpose", getattr(ops, f"conv{n}d_transpose"), n) for n in (1, 2, 3))


def separable_conv2d(input, depthwise_filter, pointwise_filter, strides, padding, data_format=None, dilations=None, name=None):
    """depthwise_conv2d, and a convolution of 1 by 1 that mixes its channels."""
    _channels_last(data_format, "separable_conv2d")
    return ops.separable_conv2d(input, depthwise_filter, pointwise_filter, strides=_inner(strides, data_format, 2),
                                **_pad(padding), dilations=None if dilations is None else _inner(dilations, data_format, 2))


def _blocks(op):
    def rearranged(input, block_size, data_format="NHWC", name=None):
        return op(input, block_size, channels_first=data_format == "NCHW")
    rearranged.__name__ = rearranged.__qualname__ = op.__name__
    rearranged.__doc__ = op.__doc__
    return rearranged


depth_to_space, space_to_depth = _blocks(ops.depth_to_space), _blocks(ops.space_to_depth)


def ctc_loss(labels, logits, label_length, logit_length, logits_time_major=True, unique=None, blank_index=None, name=None):
    """-log of the probability that logits [time, batch, classes], or [batch, time, classes] unless logits_time_major, give to
    the labels, integers [batch, length]: [batch]. The blank is class 0 unless blank_index names another."""
    from ..nn import ctc_loss as loss
    if logits_time_major:
        logits = ops.transpose(logits, [1, 0, 2])
    blank = 0 if blank_index is None else int(blank_index)
    if blank < 0:
        blank += ops.add(logits, 0).shape[-1]
    return loss(labels, logits, label_length, logit_length, mask_index=blank)


def depthwise_conv2d(input, filter, strides, padding, data_format=None, dilations=None, name=None):
    """Convolution of each channel separately, with filter [rows, columns, channels, multiplier]."""
    _channels_last(data_format, "depthwise_conv2d")
    return ops.depthwise_conv2d(input, filter, strides=_inner(strides, data_format, 2), **_pad(padding),
                                dilations=None if dilations is None else _inner(dilations, data_format, 2))


def _pool(label, op, rank):
    def pool(input, ksize, strides, padding, data_format=None, name=None):
        _channels_last(data_format, pool.__name__)
        return op(input, _inner(ksize, data_format, rank), strides=_inner(strides, data_format, rank), **_pad(padding))
    pool.__name__ = pool.__qualname__ = label
    pool.__doc__ = op.__doc__
    return pool


max_pool1d, max_pool2d, max_pool3d = (_pool(f"max_pool{n}d", getattr(ops, f"max_pool{n}d"), n) for n in (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = (_pool(f"avg_pool{n}d", getattr(ops, f"avg_pool{n}d"), n) for n in (1, 2, 3))


def gelu(features, approximate=False, name=None):
    """x times the normal distribution function at x; with `approximate`, by tanh."""
    return ops.gelu(features, approximate=approximate)


def dropout(x, rate, noise_shape=None, seed=None, name=None):
    """Each element becomes 0 with probability `rate`, else it is divided by 1 - rate. noise_shape: the shape of the draws,
    which broadcasts to x."""
    if noise_shape is not None or seed is not None:
        keep = ops.cast(ops.greater_equal(_uniform(_sizes(x if noise_shape is None else noise_shape, noise_shape is None), seed), rate), ops.add(x, 0).dtype)
        return ops.multiply(ops.divide(x, 1 - rate), keep)
    return ops.dropout(x, rate)


def _sizes(given, is_tensor):
    if is_tensor:
        return tuple(ops.add(given, 0).shape)
    return _native._sizes(given)


def _uniform(shape, seed):
    from .random import uniform
    return uniform(shape, dtype=float32, seed=seed)


def moments(x, axes, shift=None, keepdims=False, name=None):
    """Mean and variance over axes."""
    return tuple(ops.moments(x, axis=axes, keepdims=keepdims))


def sufficient_statistics(x, axes, shift=None, keepdims=False, name=None):
    """Number of elements, sum and sum of squares of x - shift, and the shift."""
    found = ops.sufficient_statistics(x, shift, axis=axes, keepdims=keepdims)
    return found[0], found[1], found[2], shift


def normalize_moments(counts, mean_ss, variance_ss, shift, name=None):
    """Mean and variance from sufficient_statistics()."""
    return tuple(ops.normalize_moments(count=counts, mean=mean_ss, variance=variance_ss, shift=shift))


def batch_normalization(x, mean, variance, offset, scale, variance_epsilon, name=None):
    """(x - mean) / sqrt(variance + epsilon) * scale + offset."""
    return ops.batch_normalization(x, mean, variance, scale=scale, offset=offset, epsilon=variance_epsilon)


def local_response_normalization(input, depth_radius=5, bias=1, alpha=1, beta=0.5, name=None):
    """x / (bias + alpha * sum of the squares of neighbouring channels)^beta."""
    return ops.local_response_normalization(input, depth_radius=depth_radius, bias=bias, alpha=alpha, beta=beta)


lrn = local_response_normalization


def top_k(input, k=1, sorted=True, index_type="int32", name=None):
    """The k largest elements of the last axis, in descending order, and their indices."""
    from .math import top_k as found
    return found(input, k, sorted, index_type)


def max_pool(input, ksize, strides, padding, data_format=None, name=None):
    """The largest element of each window, for one to three spatial axes."""
    rank = ops.shape(input).shape[0] - 2
    return (max_pool1d, max_pool2d, max_pool3d)[rank - 1](input, ksize, strides, padding, data_format)


def avg_pool(input, ksize, strides, padding, data_format=None, name=None):
    """The mean of each window, for one to three spatial axes."""
    rank = ops.shape(input).shape[0] - 2
    return (avg_pool1d, avg_pool2d, avg_pool3d)[rank - 1](input, ksize, strides, padding, data_format)


def max_pool_with_argmax(input, ksize, strides, padding, data_format="NHWC", output_dtype="int64", include_batch_in_index=False,
                         name=None):
    """The largest element of each window, and its flat index within its image."""
    _channels_last(data_format, "max_pool_with_argmax")
    found = ops.max_pool_with_argmax(input, _inner(ksize, data_format, 2), strides=_inner(strides, data_format, 2), **_pad(padding))
    return found[0], ops.cast(found[1], output_dtype)


def compute_average_loss(per_example_loss, sample_weight=None, global_batch_size=None):
    """The sum of the examples' losses, divided by the number of examples of the whole batch: in a step of a strategy the
    results of the replicas add up to the mean."""
    from .distribute import get_strategy
    loss = ops.add(per_example_loss, 0)
    if sample_weight is not None:
        loss = ops.multiply(loss, ops.cast(sample_weight, loss.dtype))
    if global_batch_size is None:
        global_batch_size = loss.shape[0] * get_strategy().num_replicas_in_sync
    return ops.divide(ops.reduce_sum(loss), ops.cast(global_batch_size, loss.dtype))


def scale_regularization_loss(regularization_loss):
    """The sum of penalties, divided by the number of replicas."""
    from .distribute import get_strategy
    return ops.divide(ops.reduce_sum(regularization_loss), get_strategy().num_replicas_in_sync)
