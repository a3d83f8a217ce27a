"""Keras reads what train_test left in a directory (GRADUS_WRITTEN), and gives the outputs of the models that it was made
from: check_files.py DIRECTORY"""
import os
import sys

os.environ["KERAS_BACKEND"] = "tensorflow"
import keras
import numpy as np
import make_files

directory = sys.argv[1]
here = os.path.dirname(os.path.abspath(__file__))


def listed(value):
    """An axis is a number or a list of one."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


def same_form(option, value):
    """A factor f is a range [-f, f]."""
    if option.endswith("factor") and isinstance(value, (int, float)):
        return [-value, value]
    return listed(value)


def compare(name, model, tolerance):
    with np.load(os.path.join(here, name + ".npz")) as arrays:
        y = np.array(keras.ops.cast(model(arrays["x"], training=False), "float32"))
        np.testing.assert_allclose(y, arrays["y"], atol=tolerance, err_msg=name)


for name in ("images", "sequences", "shapes", "mixed", "masked", "cells", "augmented"):
    model = keras.models.load_model(os.path.join(directory, name + ".keras"))
    original = keras.models.load_model(os.path.join(here, name + ".keras"))
    assert [type(a).__name__ for a in model.layers] == [type(b).__name__ for b in original.layers], name
    assert [a.trainable for a in model.layers] == [b.trainable for b in original.layers], name
    assert [a.dtype_policy.name for a in model.layers] == [b.dtype_policy.name for b in original.layers], name
    for a, b in zip(model.layers, original.layers):
        mine, theirs = a.get_config(), b.get_config()
        for option in mine:
            if not option.endswith(("_initializer", "_regularizer")) and option not in (
                    "layer", "backward_layer", "layers", "cell", "seed"):
                assert same_form(option, mine[option]) == same_form(option, theirs[option]), (
                    name, a.name, option, mine[option], theirs[option])
    penalties = [[float(loss) for loss in each.losses] for each in (model, original)]
    np.testing.assert_allclose(*penalties, rtol=1e-5, err_msg=name)
    compare(name, model, 1e-5)
compare("chain", keras.models.load_model(os.path.join(directory, "chain.keras")), 1e-5)
scores = make_files.Scores()
scores(np.zeros((1, 5, 4), "float32"))
scores.load_weights(os.path.join(directory, "scores.weights.h5"))
compare("scores", scores, 1e-5)
net = make_files.Net()
net(np.zeros((1, 5, 3), "float32"))
net.load_weights(os.path.join(directory, "net.weights.h5"))
compare("net", net, 1e-5)
narrow = make_files.narrow()
narrow.load_weights(os.path.join(directory, "narrow.weights.h5"))
compare("narrow", narrow, 1e-5)
