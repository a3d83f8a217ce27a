"""keras.Variable on a Variable of this engine."""
import threading

import gradus
from keras.src.backend.common import KerasVariable
from keras.src.backend.common.stateless_scope import in_stateless_scope

from keras_gradus.src.ops.core import convert_to_numpy, convert_to_tensor
from keras_gradus.src.replicas import sees_shard


def _computed(make):
    """make(), a tensor of numbers also while this thread traces a function: layers are often built by their first call.
    Another thread traces nothing."""
    if not gradus.ops.zeros([]).is_symbolic:
        return make()
    found = []

    def run():
        try:
            found.append(make().numpy())
        except BaseException as error:  # noqa: BLE001, which the caller gets
            found.append(error)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]


class Variable(KerasVariable):
    """A keras.Variable, whose value is in a gradus.Variable. Functions of this engine take it as its value."""

    def _initialize(self, value):
        if isinstance(value, gradus.Variable):
            self._value = value
            return
        value = convert_to_tensor(value, dtype=self._dtype)
        # A value that shards of a batch assign differently, as moving statistics, becomes their mean.
        aggregation = "sum" if self.aggregation == "sum" else "mean" if value.dtype.is_floating else "none"
        self._value = gradus.Variable(value, self.path, bool(self.trainable), aggregation=aggregation)

    def _initialize_with_initializer(self, initializer):
        self._initialize(_computed(lambda: initializer(self._shape, dtype=self._dtype)))

    def _deferred_initialize(self):
        if self._value is not None:
            raise ValueError(f"Variable {self.path} is already initialized.")
        if in_stateless_scope():
            raise ValueError("You are attempting to initialize a variable while in a stateless scope. This is disallowed. Build "
                             f"the layer or model of {self.path} before it is used there")
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
        if self.aggregation == "sum" and sees_shard():  # a state of a metric, which a shard adds to
            self._value.assign_add(gradus.ops.subtract(value, self._value))
        else:
            self._value.assign(value)

    def _convert_to_tensor(self, value, dtype=None):
        return convert_to_tensor(value, dtype=dtype)

    def __gradus_tensor__(self):
        return self.value

    def __gradus_variable__(self):
        return self._value

    def __array__(self, dtype=None, copy=None):
        array = convert_to_numpy(self.value)
        return array if dtype is None else array.astype(dtype)
