"""Keras on this engine:  from gradus import keras

This is the installed Keras on the backend `gradus` (docs/keras.md). Importing it chooses the backend. ImportError if Keras is
not installed, or was imported before with another backend.
"""
import importlib.util
import os
import sys


def _keras():
    if importlib.util.find_spec("keras") is None:
        raise ImportError("gradus.keras is Keras, which is not installed: pip install 'keras>=3.10'. Without it, layers, "
                          "losses, optimizers and models with fit are in gradus.nn", name="keras")
    from keras_gradus import former_names
    if "keras" not in sys.modules:
        os.environ["KERAS_BACKEND"] = "gradus"
    import keras
    if keras.config.backend() != "gradus":
        raise ImportError(f"gradus.keras: Keras runs on {keras.config.backend()} already, since it was imported before. Set "
                          "KERAS_BACKEND=gradus, or import gradus.keras first", name="keras")
    former_names.install()
    return keras


sys.modules[__name__] = _keras()
