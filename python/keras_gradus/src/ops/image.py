"""keras.ops of keras.ops.image."""
from keras_gradus.src import keras_text

keras_text.run(globals())
