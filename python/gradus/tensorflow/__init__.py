"""TensorFlow's names on this engine: tf.math, tf.nn, tf.linalg, tf.image, tf.signal, tf.bitwise, tf.random."""
from . import bitwise, image, linalg, math, nn, random, signal

__all__ = ["bitwise", "image", "linalg", "math", "nn", "random", "signal"]
