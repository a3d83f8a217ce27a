"""keras.Variable on a Variable of this engine."""
import gradus
from keras.src.backend.common import KerasVariable
from keras.src.backend.common.stateless_scope import in_stateless_scope

from keras_gradus.src.ops.core import convert_to_numpy, convert_to_tensor


class Variable(KerasVariable):
    """A keras.Variable, whose value is in a gradus.Variable. Functions of this engine take it as its value."""

    def _initialize(self, value):
        self._value = value if isinstance(value, gradus.Variable) else gradus.Variable(
            convert_to_tensor(value, dtype=self._dtype), self.name, bool(self.trainable))

    def _initialize_with_initializer(self, initializer):
        self._initialize(initializer(self._shape, dtype=self._dtype))

    def _deferred_initialize(self):
        if self._value is not None:
            raise ValueError(f"Variable {self.path} is already initialized.")
        if in_stateless_scope():
            raise ValueError(f"Variable {self.path} cannot be initialized in a stateless scope: build the layer or model "
                             "before it is used there")
        self._initialize_with_initializer(self._initializer)
        self._initializer = None

    @property
    def value(self):
        value = KerasVariable.value.fget(self)
        return value.value() if isinstance(value, gradus.Variable) else value

    def _direct_assign(self, value):
        value = convert_to_tensor(value, dtype=self._dtype)
        if tuple(value.shape) != tuple(self._value.shape):
            value = gradus.ops.broadcast_to(value, self._value.shape)
        self._value.assign(value)

    def _convert_to_tensor(self, value, dtype=None):
        return convert_to_tensor(value, dtype=dtype)

    def __gradus_tensor__(self):
        return self.value

    def __array__(self, dtype=None, copy=None):
        array = convert_to_numpy(self.value)
        return array if dtype is None else array.astype(dtype)
