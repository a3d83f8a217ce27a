"""tf.keras: the installed Keras on this engine, gradus.keras."""
import importlib
import sys

sys.modules[__name__] = importlib.import_module("gradus.keras")
