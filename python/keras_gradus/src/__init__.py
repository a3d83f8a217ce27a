"""The backend, as Keras asks for it."""
from keras.src.backend.common import dtypes

from keras_gradus.src.ops.core import (cast, compute_output_spec, cond, convert_to_numpy, convert_to_tensor, custom_gradient,
                                       device_scope, is_tensor, random_seed_dtype, scatter, shape, standardize_shape,
                                       stop_gradient, vectorized_map)
from keras_gradus.src.scopes import name_scope
from keras_gradus.src.variable import Variable

SUPPORTS_SPARSE_TENSORS = False
SUPPORTS_RAGGED_TENSORS = False
SUPPORTS_COMPLEX_DTYPES = False
IS_THREAD_SAFE = True
# For all backends but TensorFlow Keras computes in float32 where operands are float64, since JAX does. Here a layer or a
# program that asks for float64 gets it, as by TensorFlow.
dtypes.BIT64_TO_BIT32_DTYPE["float64"] = "float64"

from keras_gradus.src.ops import core, image, linalg, math, nn, numpy  # noqa: E402, which import what is above
from keras_gradus.src import distribution_lib, random  # noqa: E402
from keras_gradus.src.rnn import bidirectional_gru, bidirectional_lstm, cudnn_ok, gru, lstm, rnn  # noqa: E402
