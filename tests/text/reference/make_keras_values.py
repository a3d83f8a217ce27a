#!/usr/bin/env python3
"""Makes keras_values.json beside this file: what Keras 3 computes with its layers of text and categories, for
lookups_test.cpp.

    make_keras_values.py        (in an environment with keras and tensorflow)
"""
import json
import os
import pathlib

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import numpy as np
import tensorflow as tf
from keras import layers

HERE = pathlib.Path(__file__).resolve().parent
TEXTS = ["The cat sat on the mat.", "the dog; the DOG, the d.o.g!", "A cat and a dog", "  spaces\tand\nlines  ", "",
         "Größe ÉCOLE mat", "don't stop-me (now)", "mat mat mat sat"]
UNSEEN = ["the bird sat", "", "mat, mat & THE dog", "École große cat"]
WORDS = ["red", "blue", "red", "green", "blue", "red", "yellow", "azure"]
ASKED = [["red", "green"], ["pink", ""], ["[UNK]", "azure"], ["black", "white"]]
NUMBERS = [7, 3, 7, 100, 3, 7, -5, 12, 12]
ASKED_NUMBERS = [[7, 100], [-5, 0], [99, 12], [-1, -4]]
HASHED = ["", "A", "ab", "abc", "abcd", "hello w", "hello wo", "0123456789abcde", "0123456789abcdef", "x" * 17,
          "a somewhat longer text of 32 b..", "y" * 33, "z" * 64, "w" * 65, "v" * 128, "u" * 200, "ÄÖ€𝔘"]
POINTS = [[-1.5, 1.0, 3.4, 0.5], [0.0, 3.0, 1.3, 0.0]]


def rows():
    """name, kind, options, made by adapt or not, inputs."""
    for name, options in {
        "plain": {}, "few": {"max_tokens": 6}, "length": {"output_sequence_length": 3}, "long": {"output_sequence_length": 9},
        "lower": {"standardize": "lower"}, "strip": {"standardize": "strip_punctuation"}, "none": {"standardize": None},
        "characters": {"split": "character"}, "bigrams": {"ngrams": 2}, "trigrams": {"ngrams": (3,)}, "mixed": {"ngrams": (3, 1)},
        "multi_hot": {"output_mode": "multi_hot"}, "count": {"output_mode": "count"}, "tf_idf": {"output_mode": "tf_idf"},
        "padded": {"output_mode": "multi_hot", "max_tokens": 40, "pad_to_max_tokens": True},
        "padded_tf_idf": {"output_mode": "tf_idf", "max_tokens": 40, "pad_to_max_tokens": True},
        "few_tf_idf": {"output_mode": "tf_idf", "max_tokens": 5, "ngrams": 2},
    }.items():
        layer = layers.TextVectorization(**options)
        layer.adapt(TEXTS)
        yield "TextVectorization/" + name, options, layer, UNSEEN + TEXTS, layer.get_vocabulary()
    given = {"vocabulary": ["earth", "wind", "and", "fire"], "output_mode": "tf_idf", "idf_weights": [0.5, 1.0, 0.25, 2.0]}
    layer = layers.TextVectorization(**given)
    yield "TextVectorization/given", given, layer, ["wind and wind", "ice Fire"], layer.get_vocabulary()
    for name, options in {
        "plain": {}, "mask": {"mask_token": ""}, "oov": {"num_oov_indices": 3}, "oov_mask": {"num_oov_indices": 2, "mask_token": ""},
        "few": {"max_tokens": 3}, "one_hot": {"output_mode": "one_hot"}, "multi_hot": {"output_mode": "multi_hot", "mask_token": ""},
        "count": {"output_mode": "count", "num_oov_indices": 2}, "tf_idf": {"output_mode": "tf_idf"},
        "no_oov": {"num_oov_indices": 0},
    }.items():
        layer = layers.StringLookup(**options)
        layer.adapt(WORDS)
        yield "StringLookup/" + name, options, layer, [["red", "azure"], ["blue", "red"]] if name == "no_oov" else ASKED, layer.get_vocabulary()
    for name, options in {
        "plain": {}, "mask": {"mask_token": 0}, "oov": {"num_oov_indices": 3}, "few": {"max_tokens": 3, "mask_token": -5},
        "one_hot": {"output_mode": "one_hot"}, "multi_hot": {"output_mode": "multi_hot", "mask_token": 0},
        "count": {"output_mode": "count", "num_oov_indices": 2}, "tf_idf": {"output_mode": "tf_idf"},
    }.items():
        layer = layers.IntegerLookup(**options)
        layer.adapt(np.array(NUMBERS))
        yield "IntegerLookup/" + name, options, layer, ASKED_NUMBERS, [int(word) for word in layer.get_vocabulary()]
    for name, options in {"plain": {"num_bins": 1000003}, "mask": {"num_bins": 5, "mask_value": ""},
                          "salt": {"num_bins": 1000003, "salt": [133, 137]}, "one_salt": {"num_bins": 977, "salt": 12}}.items():
        yield "Hashing/" + name, options, layers.Hashing(**options), HASHED, None
    yield "HashingIntegers/plain", {"num_bins": 100003}, layers.Hashing(num_bins=100003), NUMBERS, None
    for mode in ("one_hot", "multi_hot", "count"):
        options = {"num_tokens": 4, "output_mode": mode}
        yield "CategoryEncoding/" + mode, options, layers.CategoryEncoding(**options), [[0, 1], [0, 0], [1, 2], [3, 1]], None
    for name, options in {"given": {"bin_boundaries": [0.0, 1.0, 2.0]}, "one_hot": {"bin_boundaries": [0.5], "output_mode": "one_hot"},
                          "count": {"bin_boundaries": [0.5, 1.0], "output_mode": "count"}}.items():
        yield "Discretization/" + name, options, layers.Discretization(**options), POINTS, None
    for name, values, bins, epsilon in (("small", POINTS, 4, 0.01), ("many", [[float(i * i % 97)] for i in range(500)], 5, 0.01),
                                        ("coarse", [[float(i * 7 % 101)] for i in range(64)], 3, 0.1)):
        layer = layers.Discretization(num_bins=bins, epsilon=epsilon)
        layer.adapt(np.array(values, dtype="float32"))
        yield "DiscretizationAdapted/" + name, {"num_bins": bins, "epsilon": epsilon, "data": values}, layer, POINTS, [float(b) for b in layer.bin_boundaries]


def main():
    made = []
    for name, options, layer, inputs, vocabulary in rows():
        result = layer(tf.constant(inputs))
        result = np.array(result)
        made.append({"name": name, "options": options, "inputs": inputs, "vocabulary": vocabulary, "shape": list(result.shape),
                     "values": [float(value) for value in result.reshape(-1)]})
        print(name, result.shape, result.dtype)
    text = ",\n".join(json.dumps(row, separators=(",", ":")) for row in made)
    (HERE / "keras_values.json").write_text(f"[{text}]\n")


main()
