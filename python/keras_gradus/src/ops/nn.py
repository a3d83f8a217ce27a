"""keras.ops of neural networks: Keras's, and those that are ops of the engine."""
from gradus import nn as _nn, ops as _ops

from keras_gradus.src import keras_text
from keras_gradus.src.ops.core import cast as _cast, convert_to_tensor as _convert

keras_text.run(globals())


def _over_all(op, x, axis):
    """op along the axis, or over all elements where it is None."""
    x = _convert(x)
    return op(x, axis=axis) if axis is not None else _ops.reshape(op(_ops.reshape(x, [-1]), axis=-1), x.shape)


def softmax(x, axis=-1):
    return _over_all(_ops.softmax, x, axis)


def log_softmax(x, axis=-1):
    return _over_all(_ops.log_softmax, x, axis)


def sigmoid(x):
    return _ops.sigmoid(_convert(x))


def ctc_loss(target, output, target_length, output_length, mask_index=0):
    """The losses [batch] of aligning the logits [batch, time, classes] with the labels [batch, places]."""
    output = _convert(output)
    lengths = [_cast(_convert(length), "int32") for length in (target_length, output_length)]
    return _nn.losses.ctc_loss(_cast(_convert(target), "int32"), output, *lengths, mask_index=mask_index) \
        if hasattr(_nn, "losses") else _nn.ctc_loss(_cast(_convert(target), "int32"), output, *lengths, mask_index=mask_index)


def ctc_decode(inputs, sequence_lengths, strategy="greedy", beam_width=100, top_paths=1, merge_repeated=True, mask_index=0):
    found = _nn.ctc_decode(_convert(inputs), _cast(_convert(sequence_lengths), "int32"), strategy=strategy,
                           beam_width=beam_width, top_paths=top_paths, merge_repeated=merge_repeated, mask_index=mask_index)
    return tuple(found)
