"""keras.ops of linear algebra."""
from keras_gradus.src import keras_text

keras_text.run(globals())
