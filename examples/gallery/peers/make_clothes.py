"""Makes data/clothes.keras: a small network that tells the first five classes of Fashion-MNIST apart, trained by Keras 3.

    KERAS_BACKEND=jax python3 make_clothes.py
"""
import gzip
import os
import pathlib

import keras
import numpy as np
from keras import layers

DATA = os.environ.get("FASHION_MNIST_DIR", "/usr/share/datasets/fashion-mnist")


def load(name):
    images = np.frombuffer(gzip.open(f"{DATA}/{name}-images-idx3-ubyte.gz").read(), np.uint8, offset=16)
    labels = np.frombuffer(gzip.open(f"{DATA}/{name}-labels-idx1-ubyte.gz").read(), np.uint8, offset=8)
    return images.reshape(-1, 28, 28, 1).astype("float32") / 255, labels.astype("int32")


keras.utils.set_random_seed(1)
x, y = load("train")
x, y = x[y < 5][:20000], y[y < 5][:20000]
model = keras.Sequential([
    keras.Input((28, 28, 1)),
    layers.Conv2D(16, 3, strides=2, padding="same", use_bias=False), layers.BatchNormalization(), layers.ReLU(),
    layers.Conv2D(32, 3, strides=2, padding="same", use_bias=False), layers.BatchNormalization(), layers.ReLU(),
    layers.Conv2D(64, 3, strides=2, padding="same", use_bias=False), layers.BatchNormalization(), layers.ReLU(),
    layers.GlobalAveragePooling2D(), layers.Dense(5, name="scores")])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
model.fit(x, y, batch_size=64, epochs=4)
model.compile()  # without the optimizer's state the file is a third as large
model.save(pathlib.Path(__file__).parent.parent / "data" / "clothes.keras")
