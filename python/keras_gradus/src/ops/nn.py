"""keras.ops of neural networks: Keras's, and those that are ops of the engine."""
from gradus import nn as _nn, ops as _ops
from keras.src.backend.common.dtypes import result_type as _result_type
from keras.src.backend.common.variables import standardize_dtype as _standardize

from keras_gradus.src import keras_text, replicas as _replicas
from keras_gradus.src.ops.core import cast as _cast, convert_to_tensor as _convert

keras_text.run(globals())


_moments = moments  # noqa: F821, of Keras's text


def moments(x, axes, keepdims=False, synchronized=False):
    """The mean and the variance. synchronized takes those of the whole batch, where a step runs on shards."""
    if not (synchronized and _replicas.is_divided()):
        return _moments(x, axes, keepdims)
    x = _convert(x)
    wide = _cast(x, _result_type(_dtype_of(x), "float32"))
    count = _of_all_shards(_ops.ones_like(wide), axes)
    mean = _ops.divide(_of_all_shards(wide, axes), count)
    variance = _ops.divide(_of_all_shards(_ops.square(_ops.subtract(wide, mean)), axes), count)
    if not keepdims:
        mean, variance = _ops.squeeze(mean, axis=axes), _ops.squeeze(variance, axis=axes)
    if _dtype_of(x) == "float16":
        mean, variance = (_ops.clip_by_value(each, -65504.0, 65504.0) for each in (mean, variance))
    return _cast(mean, _dtype_of(x)), _cast(variance, _dtype_of(x))


def _dtype_of(x):
    return _standardize(x.dtype)


def _of_all_shards(x, axes):
    return _ops.all_reduce_sum(_ops.reduce_sum(x, axis=axes, keepdims=True))


def _with_lengths(*lengths):
    return [_cast(_convert(length), "int32") for length in lengths]


def _at_least_float32(logits):
    logits = _convert(logits)
    return _cast(logits, _result_type(logits.dtype, "float32"))


def ctc_loss(target, output, target_length, output_length, mask_index=0):
    """The losses [batch] of aligning the logits [batch, time, classes] with the labels [batch, places]."""
    return _nn.ctc_loss(_cast(_convert(target), "int32"), _at_least_float32(output),
                        *_with_lengths(target_length, output_length), mask_index=mask_index)


def ctc_decode(inputs, sequence_lengths, strategy="greedy", beam_width=100, top_paths=1, merge_repeated=True, mask_index=0):
    if strategy not in ("greedy", "beam_search"):
        raise ValueError(f"Invalid strategy {strategy}. Supported values are 'greedy' and 'beam_search'.")
    return tuple(_nn.ctc_decode(_at_least_float32(inputs), *_with_lengths(sequence_lengths), strategy=strategy,
                                beam_width=beam_width, top_paths=top_paths, merge_repeated=merge_repeated,
                                mask_index=mask_index))


_dot_product_attention = dot_product_attention  # noqa: F821, of Keras's text


def dot_product_attention(query, key, value, bias=None, mask=None, scale=None, is_causal=False, flash_attention=None,
                          attn_logits_soft_cap=None):
    """Attention. flash_attention is a way to compute it on other devices, with the same result."""
    return _dot_product_attention(query, key, value, bias, mask, scale, is_causal,
                                  attn_logits_soft_cap=attn_logits_soft_cap)
