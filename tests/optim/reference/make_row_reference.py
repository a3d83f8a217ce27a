#!/usr/bin/env python3
"""Makes keras_rows.safetensors beside this file: what Keras 3's optimizers make of a table of which a step's gradient
has a few rows (tf.IndexedSlices), f64. In an environment with keras and tensorflow.

The table is [ROWS, 3]; element (i, j) starts as cos(0.7 i + 1.3 j). The gradient of step t (from 1 on) is, at the p-th
of its indices, sin(1.1 t + 0.3 p + 2.1 j). No index stands twice in a step: there Keras squares before it adds.
Stored is what the first 20 rows have become; rows from 16 on never have a gradient.
"""
import pathlib
import sys

import numpy as np

from make_reference import in_double, write

ROWS, SHOWN = 5000, 20
INDICES = [[3, 7, 0], [7, 15, 2], [1, 3, 9], [15, 0, 4], [2, 8, 7]]


def cases():
    import keras
    o = keras.optimizers
    made = {
        "sgd": o.SGD(0.1),
        "momentum": o.SGD(0.1, momentum=0.9),
        "nesterov": o.SGD(0.1, momentum=0.9, nesterov=True),
        "rmsprop": o.RMSprop(0.1),
        "rmsprop_centered": o.RMSprop(0.1, momentum=0.5, centered=True),
        "adam": o.Adam(0.1),
        "amsgrad": o.Adam(0.1, beta_2=0.9, amsgrad=True),
        "adamw": o.AdamW(0.1, weight_decay=0.1),
        "nadam": o.Nadam(0.1),
        "adagrad": o.Adagrad(0.1),
        "adadelta": o.Adadelta(1.0),
        "adamax": o.Adamax(0.1),
        "ftrl": o.Ftrl(0.1),
        "lion": o.Lion(0.1),
        "lamb": o.Lamb(0.1),
        "clipnorm": o.Adam(0.1, clipnorm=0.5),
        "global_clipnorm": o.Adam(0.1, global_clipnorm=0.5),
        "ema": o.SGD(0.1, use_ema=True, ema_momentum=0.6, ema_overwrite_frequency=2),
    }
    for optimizer in made.values():
        in_double(optimizer)
    return made


def main():
    import keras
    import tensorflow as tf
    keras.backend.set_floatx("float64")
    columns = np.arange(3)
    start = np.cos(0.7 * np.arange(ROWS)[:, None] + 1.3 * columns)
    tables = {}
    for name, optimizer in cases().items():
        table = keras.Variable(start, name="table", dtype="float64")
        for t, indices in enumerate(INDICES, 1):
            values = np.sin(1.1 * t + 0.3 * np.arange(len(indices))[:, None] + 2.1 * columns)
            gradient = tf.IndexedSlices(tf.constant(values), tf.constant(indices), tf.constant([ROWS, 3]))
            optimizer.apply([gradient], [table])
        tables[name] = table.numpy()[:SHOWN]
    write(pathlib.Path(__file__).resolve().parent / "keras_rows.safetensors", tables)


sys.exit(main())
