"""keras.ops of keras.ops.image."""
from keras_gradus.src import keras_text

keras_text.run(globals())
AFFINE_TRANSFORM_FILL_MODES = (*AFFINE_TRANSFORM_FILL_MODES, "mirror")  # noqa: F821, of Keras's text
