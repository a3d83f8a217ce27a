#!/usr/bin/env python3
"""Makes values.safetensors beside this file: what Keras 3 computes in f64 for the models of keras_values_test.cpp and
penalties_test.cpp: results, masks, losses of regularizers, gradients, and trainings by fit.

    make_values.py        (in an environment with keras and tensorflow)

Of each case NAME there are NAME/x, the weights NAME/w0 ..., NAME/y, NAME/losses, NAME/mask, the gradients NAME/g0 ...
of sum(y * NAME/cotangent) + sum(losses) by the trainable weights, and NAME/gx by x.
Numbers are binary fractions where Keras would round them to float32.
"""
import json
import os
import pathlib
import struct

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np
import tensorflow as tf
from keras import layers, regularizers

HERE = pathlib.Path(__file__).resolve().parent
keras.config.set_floatx("float64")
KINDS = {"float64": "F64", "int32": "I32", "bool": "BOOL"}


def write(path, arrays):
    header, blobs, offset = {}, [], 0
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        blob = array.tobytes()
        header[name] = {"dtype": KINDS[str(array.dtype)], "shape": list(np.shape(arrays[name])),
                        "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


L1, L2, L1L2 = regularizers.L1, regularizers.L2, regularizers.L1L2
DRAW = np.random.default_rng(11)


def normal(*shape):
    return DRAW.normal(size=shape)


def words(batch, time):
    """Sentences in 1 ... 8 with zeros at their ends, one of them with a gap."""
    x = DRAW.integers(1, 9, size=(batch, time)).astype(np.int32)
    for row in range(batch):
        x[row, time - row % time:] = 0
    x[0, 1] = 0
    return x


def places(batch, time, features):
    x = normal(batch, time, features)
    x[words(batch, time) == 0] = 0
    return x


def dense_penalties():
    return keras.Sequential([
        layers.Dense(5, "tanh", kernel_regularizer=L2(0.03125), bias_regularizer=L1(0.015625),
                     activity_regularizer=L1L2(0.0078125, 0.03125)),
        layers.ActivityRegularization(l1=0.015625, l2=0.0625),
        layers.Dense(3, kernel_regularizer=L1L2(0.0625, 0.125))])


def self_attention(x, **options):
    inputs = keras.Input(x.shape[1:])
    layer = layers.MultiHeadAttention(2, 4, **options)
    return keras.Model(inputs, layer(inputs, inputs))


def attention_of_words(after):
    inputs = keras.Input((5,), dtype="int32")
    h = layers.Embedding(9, 4, mask_zero=True)(inputs)
    h = layers.MultiHeadAttention(2, 4)(h, h)
    return keras.Model(inputs, after(h))


def masked_sum():
    inputs = keras.Input((5,), dtype="int32")
    a = layers.Embedding(9, 4, mask_zero=True)(inputs)
    b = layers.Dense(4, "tanh")(a)
    return keras.Model(inputs, layers.LSTM(3)(layers.Add()([a, b])))


def masked_pair():
    inputs = keras.Input((5,), dtype="int32")
    a = layers.Embedding(9, 4, mask_zero=True)(inputs)
    b = layers.Embedding(9, 3)(inputs)
    return keras.Model(inputs, layers.GRU(3)(layers.Concatenate()([a, b])))


def two_inputs(attention, width):
    """Of the first two places to the others, whose keys are a dense layer of them."""
    inputs = keras.Input((5, width))
    query, value = inputs[:, :2], inputs[:, 2:]
    key = layers.Dense(width)(value)
    return keras.Model(inputs, attention([query, value, key]))


def causal(attention):
    inputs = keras.Input((5, 4))
    return keras.Model(inputs, attention([inputs, inputs], use_causal_mask=True))


def masked_attention():
    inputs = keras.Input((5,), dtype="int32")
    h = layers.Embedding(9, 4, mask_zero=True)(inputs)
    return keras.Model(inputs, layers.Attention()([h, h]))


def sequential(*all_of_them):
    return keras.Sequential(list(all_of_them))


def embedding(**options):
    return layers.Embedding(9, 4, mask_zero=True, **options)


# name: (model, x, training)
CASES = {
    "penalties_dense": (dense_penalties(), normal(6, 4), True),
    "penalties_conv": (sequential(
        layers.Conv2D(4, 3, kernel_regularizer=L2(0.03125), bias_regularizer=L1(0.0625),
                      activity_regularizer=L1(0.0078125)),
        layers.DepthwiseConv2D(2, depthwise_regularizer=L1(0.03125)),
        layers.SeparableConv2D(3, 2, depthwise_regularizer=L2(0.0625), pointwise_regularizer=L1(0.015625),
                               bias_regularizer=L2(0.125)),
        layers.Conv2DTranspose(2, 2, kernel_regularizer=L1(0.0625))), normal(2, 6, 6, 2), False),
    "penalties_sequence": (sequential(
        layers.Embedding(9, 4, embeddings_regularizer=L2(0.0625), mask_zero=True),
        layers.LSTM(3, return_sequences=True, kernel_regularizer=L1(0.03125), recurrent_regularizer=L2(0.0625),
                    bias_regularizer=L2(0.125), activity_regularizer=L2(0.0625)),
        layers.LayerNormalization(beta_regularizer=L1(0.03125), gamma_regularizer=L2(0.0625)),
        layers.GRU(2, kernel_regularizer=L2(0.03125))), words(4, 5), False),
    "penalties_norm": (sequential(
        layers.Dense(4), layers.BatchNormalization(beta_regularizer=L1(0.0625), gamma_regularizer=L2(0.03125)),
        layers.GroupNormalization(2, beta_regularizer=L2(0.0625), gamma_regularizer=L1(0.03125))), normal(6, 3), True),
    "penalties_attention": (self_attention(np.zeros((2, 4, 5)), kernel_regularizer=L2(0.0625),
                                           bias_regularizer=L1(0.03125), activity_regularizer=L2(0.015625)),
                            normal(2, 4, 5), False),
    "mask_lstm": (sequential(embedding(), layers.Dropout(0.25), layers.LSTM(3, return_sequences=True),
                             layers.Dense(3)), words(4, 5), False),
    "mask_last": (sequential(embedding(), layers.GRU(4)), words(4, 5), False),
    "mask_backwards": (sequential(layers.Masking(), layers.SimpleRNN(3, return_sequences=True, go_backwards=True)),
                       places(4, 5, 2), False),
    "mask_value": (sequential(layers.Masking(0.5), layers.LSTM(3)),
                   np.where(DRAW.random((3, 4, 1)) < 0.4, 0.5, normal(3, 4, 2)), False),
    "mask_bidirectional": (sequential(embedding(), layers.Bidirectional(layers.LSTM(3, return_sequences=True)),
                                      layers.TimeDistributed(layers.Dense(2))), words(4, 5), False),
    "mask_bidirectional_last": (sequential(embedding(), layers.Bidirectional(layers.GRU(3))), words(4, 5), False),
    "mask_attention": (attention_of_words(lambda h: h), words(4, 5), False),
    "mask_attention_mean": (attention_of_words(layers.GlobalAveragePooling1D()), words(4, 5), False),
    "mask_average": (sequential(layers.Masking(), layers.LayerNormalization(), layers.Dense(3, "relu"),
                                layers.GlobalAveragePooling1D(), layers.Dense(2)), places(4, 5, 2), False),
    "mask_batch_norm": (sequential(embedding(), layers.BatchNormalization()), words(4, 5), True),
    "mask_zero_output": (sequential(embedding(), layers.GRU(3, return_sequences=True, zero_output_for_mask=True)),
                         words(4, 5), False),
    "mask_dropped": (sequential(embedding(), layers.Conv1D(3, 2, padding="same"), layers.LSTM(2)), words(4, 5), False),
    "mask_sum": (masked_sum(), words(4, 5), False),
    "mask_concatenate": (masked_pair(), words(4, 5), False),
    "einsum_heads": (sequential(layers.EinsumDense("abc,cde->abde", (None, 2, 3), bias_axes="de",
                                                   kernel_regularizer=L2(0.0625))), normal(2, 3, 4), False),
    "einsum_left": (sequential(layers.EinsumDense("...x,xy->...y", 5, bias_axes="y", activation="tanh")),
                    normal(2, 3, 4), False),
    "einsum_right": (sequential(layers.EinsumDense("ab...,bc->ac...", 5, bias_axes="c")), normal(2, 3, 4), False),
    "einsum_no_bias": (sequential(layers.EinsumDense("abc,cd->abd", (None, 2))), normal(2, 3, 4), False),
    "attention": (two_inputs(layers.Attention(), 4), normal(2, 5, 4), False),
    "attention_scaled": (two_inputs(layers.Attention(use_scale=True, score_mode="concat"), 4), normal(2, 5, 4), False),
    "attention_additive": (two_inputs(layers.AdditiveAttention(), 4), normal(2, 5, 4), False),
    "attention_causal": (causal(layers.AdditiveAttention(use_scale=False)), normal(2, 5, 4), False),
    "attention_masked": (masked_attention(), words(4, 5), False),
    "cells_lstm": (sequential(layers.RNN(layers.LSTMCell(3), return_sequences=True)), normal(2, 4, 5), False),
    "cells_gru": (sequential(layers.RNN(layers.GRUCell(3))), normal(2, 4, 5), False),
    "cells_gru_before": (sequential(layers.RNN(layers.GRUCell(3, reset_after=False), go_backwards=True)),
                         normal(2, 4, 5), False),
    "cells_stacked": (sequential(embedding(), layers.RNN(
        [layers.LSTMCell(3), layers.SimpleRNNCell(2), layers.GRUCell(4)], return_sequences=True)), words(4, 5), False),
    "cells_masked_last": (sequential(embedding(), layers.RNN(layers.LSTMCell(3))), words(4, 5), False),
    "cells_masked_zero": (sequential(embedding(), layers.RNN(layers.GRUCell(3), return_sequences=True,
                                                             zero_output_for_mask=True)), words(4, 5), False),
    "conv_lstm_1d": (sequential(layers.ConvLSTM1D(3, 3, strides=2, padding="same", return_sequences=True,
                                                  recurrent_regularizer=L1(0.0625))), normal(2, 3, 6, 2), False),
    "conv_lstm_2d": (sequential(layers.ConvLSTM2D(2, (2, 3), activation="relu", go_backwards=True)),
                     normal(2, 3, 4, 5, 2), False),
}


def randomize(model):
    for weight in model.weights:
        value = normal(*weight.shape) / 2
        weight.assign(np.abs(value) + 0.5 if "variance" in weight.path else value)


def store_case(arrays, name, model, x, training):
    model(x)  # builds
    randomize(model)
    arrays[f"{name}/x"] = x
    for i, weight in enumerate(model.weights):
        arrays[f"{name}/w{i}"] = np.array(weight)
    inputs = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        y = model(inputs, training=training)
        cotangent = normal(*y.shape)
        if name == "mask_attention":  # at queries that do not count Keras's result hangs on the way of computing it
            cotangent *= (x != 0)[..., None]
        losses = model.losses
        total = tf.reduce_sum(y * cotangent) + (tf.add_n(losses) if losses else 0.0)
    mask = getattr(y, "_keras_mask", None)
    if mask is not None:
        arrays[f"{name}/mask"] = np.array(mask)
    arrays.update({f"{name}/y": np.array(y), f"{name}/cotangent": cotangent,
                   f"{name}/losses": np.array([float(loss) for loss in losses])})
    sources = model.trainable_weights + ([inputs] if x.dtype == np.float64 else [])
    for i, gradient in enumerate(tape.gradient(total, sources)):
        key = f"g{i}" if i < len(model.trainable_weights) else "gx"
        arrays[f"{name}/{key}"] = np.array(tf.convert_to_tensor(gradient))
    for i, weight in enumerate(model.weights):  # batch normalization has moved some
        arrays[f"{name}/after{i}"] = np.array(weight)


def store_fit(arrays, name, model, x, y, loss, batch, epochs=3):
    model(x)
    randomize(model)
    for i, weight in enumerate(model.weights):
        arrays[f"{name}/w{i}"] = np.array(weight)
    model.compile(keras.optimizers.SGD(0.125, momentum=0.5), loss)
    arrays.update({f"{name}/x": x, f"{name}/y": y})
    arrays[f"{name}/evaluate"] = np.array(model.evaluate(x, y, batch_size=batch, verbose=0))
    history = model.fit(x, y, batch_size=batch, epochs=epochs, shuffle=False, verbose=0)
    arrays[f"{name}/loss"] = np.array(history.history["loss"])
    for i, weight in enumerate(model.weights):
        arrays[f"{name}/after{i}"] = np.array(weight)


def store_augmentation(arrays):
    """Ranges of one number leave nothing to chance. In f32: Keras moves images in no other type."""
    keras.config.set_floatx("float32")
    x = (DRAW.random(size=(2, 6, 9, 3)) * 255).astype(np.float32)
    arrays["augmentation/x"] = x.astype(np.float64)
    for fill in ("reflect", "constant", "nearest"):
        made = {
            "translation": layers.RandomTranslation((0.25, 0.25), (-0.125, -0.125), fill_mode=fill),
            "rotation": layers.RandomRotation((0.0625, 0.0625), fill_mode=fill),
            "zoom": layers.RandomZoom((0.25, 0.25), (-0.125, -0.125), fill_mode=fill),
            "zoom_both": layers.RandomZoom((0.25, 0.25), fill_mode=fill),
        }
        for name, layer in made.items():
            arrays[f"augmentation/{name}_{fill}"] = np.array(layer(x, training=True)).astype(np.float64)
    brighter = layers.RandomBrightness((0.25, 0.25))
    arrays["augmentation/brightness"] = np.array(brighter(x, training=True)).astype(np.float64)
    keras.config.set_floatx("float64")


def store_spectral(arrays):
    """By numbers of its own, so that the other cases keep theirs."""
    global DRAW
    DRAW = np.random.default_rng(23)
    wrapped = layers.SpectralNormalization
    cases = {
        "spectral_dense": (wrapped(layers.Dense(3, "tanh"), power_iterations=2), normal(4, 5), True),
        "spectral_conv": (wrapped(layers.Conv2D(3, 2)), normal(2, 4, 4, 2), True),
        "spectral_embedding": (wrapped(layers.Embedding(9, 4)), words(3, 5), True),
        "spectral_inference": (wrapped(layers.Dense(3)), normal(4, 5), False),
    }
    for name, (layer, x, training) in cases.items():
        store_case(arrays, name, sequential(layer), x, training)
        for kind in ("w", "after"):  # Keras has the kernel before vector_u
            kernel = arrays.pop(f"{name}/{kind}0")
            arrays[f"{name}/{kind}0"] = arrays.pop(f"{name}/{kind}1")
            arrays[f"{name}/{kind}1"] = kernel


def main():
    arrays = {}
    store_augmentation(arrays)
    for name, case in CASES.items():
        store_case(arrays, name, *case)
    store_fit(arrays, "fit_penalties", dense_penalties(), normal(10, 4), normal(10, 3), "mse", 4)
    labels = DRAW.integers(0, 3, size=(8, 5)).astype(np.int32)
    tagger = lambda: sequential(embedding(), layers.LSTM(4, return_sequences=True), layers.Dense(3))
    entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    store_fit(arrays, "fit_mask", tagger(), words(8, 5), labels, entropy, 8)
    store_spectral(arrays)
    write(HERE / "values.safetensors", arrays)


main()
