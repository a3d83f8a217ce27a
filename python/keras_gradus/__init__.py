"""Keras 3 on this engine: KERAS_BACKEND=gradus.

    import keras_gradus                       # not needed where this was installed from a wheel
    import keras

src/ is the backend, in the layout of Keras's packages of backends. Importing this module loads neither Keras nor the
engine: it lets a released Keras, which has a fixed list of backends, find this one (finder.py).
"""
from . import finder

finder.install()
