"""keras.ops of NumPy's names."""
from keras_gradus.src import keras_text

keras_text.run(globals())
