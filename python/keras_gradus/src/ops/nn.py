"""keras.ops of neural networks: Keras's, and those that are ops of the engine."""
from gradus import nn as _nn
from keras.src.backend.common.dtypes import result_type as _result_type

from keras_gradus.src import keras_text
from keras_gradus.src.ops.core import cast as _cast, convert_to_tensor as _convert

keras_text.run(globals())


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
