"""TensorArray and IndexedSlices."""
import numpy as np

from .. import _native, ops
from .dtypes import as_dtype
from .tensors import convert_to_tensor

__all__ = ["IndexedSlices", "TensorArray"]


class TensorArray:
    """A list of tensors that programs write by index. write() returns the array: `array = array.write(i, x)`. Within
    tf.function an index is a number of Python, or follows from constants; tf.scan and tf.map_fn stack results themselves."""

    def __init__(self, dtype, size=None, dynamic_size=None, clear_after_read=None, tensor_array_name=None, handle=None,
                 flow=None, infer_shape=True, element_shape=None, colocate_with_first_write_call=True, name=None):
        self.dtype, self.element_shape = as_dtype(dtype), element_shape
        self.dynamic_size = bool(dynamic_size)
        self._parts = [None] * int(0 if size is None else size)
        if size is None and dynamic_size is None:
            self.dynamic_size = True

    def _with(self, parts):
        made = TensorArray(self.dtype, 0, self.dynamic_size, element_shape=self.element_shape)
        made._parts = parts
        return made

    def _taken(self, value):
        value = convert_to_tensor(value, None if hasattr(value, "dtype") else self.dtype)
        if value.dtype != self.dtype:
            raise _native.InvalidArgumentError(f"TensorArray: an element of {value.dtype.name} for one of {self.dtype.name}")
        return value

    def write(self, index, value, name=None):
        """The array with this element. OutOfRangeError past its end, unless its size is dynamic."""
        index, parts = int(index), list(self._parts)
        if index < 0 or (index >= len(parts) and not self.dynamic_size):
            raise _native.OutOfRangeError(f"TensorArray.write: element {index} of an array of {len(parts)}, whose size is not "
                                          "dynamic")
        parts += [None] * (index + 1 - len(parts))
        parts[index] = self._taken(value)
        self._parts = parts  # eager programs may leave out the assignment
        return self._with(parts)

    def read(self, index, name=None):
        """One element. OutOfRangeError past the end, InvalidArgumentError for one that was not written."""
        index = int(index)
        if not 0 <= index < len(self._parts):
            raise _native.OutOfRangeError(f"TensorArray.read: element {index} of an array of {len(self._parts)}")
        return self._all([index])[0]

    def _all(self, places):
        like = next((part for part in self._parts if part is not None), None)
        if like is None and places and self.element_shape is None:
            raise _native.InvalidArgumentError("TensorArray: nothing was written, and element_shape was not given")
        return [ops.zeros(self.element_shape, self.dtype) if self._parts[i] is None and like is None else
                ops.zeros_like(like) if self._parts[i] is None else self._parts[i] for i in places]

    def stack(self, name=None):
        """All elements along a new axis 0; zeros for those that were not written."""
        if not self._parts:
            return ops.zeros([0, *(self.element_shape or [])], self.dtype)
        return ops.stack(self._all(range(len(self._parts))), 0)

    def gather(self, indices, name=None):
        """The elements of these indices along a new axis 0."""
        return ops.stack(self._all([int(i) for i in np.asarray(indices).tolist()]), 0)

    def concat(self, name=None):
        """All elements along axis 0."""
        return ops.concat(self._all(range(len(self._parts))), 0)

    def unstack(self, value, name=None):
        """The array of the rows."""
        value = self._taken(value)
        return self._with([value[i] for i in range(int(value.shape[0]))])

    def scatter(self, indices, value, name=None):
        """The array with row i of the value as element indices[i]."""
        made, value = self, self._taken(value)
        for i, index in enumerate(np.asarray(indices).tolist()):
            made = made.write(index, value[i])
        return made

    def split(self, value, lengths, name=None):
        """The array of parts of these lengths."""
        sizes = [int(n) for n in np.asarray(lengths).tolist()]
        return self._with(list(ops.split(self._taken(value), sizes=sizes, axis=0)))

    def size(self, name=None):
        """The number of elements."""
        return _native.constant(len(self._parts), _native.int32)

    def identity(self):
        """The array."""
        return self

    def grad(self, source, flow=None, name=None):
        """NotImplementedError: it is TensorFlow's gradient of graphs; a GradientTape records the elements of an array."""
        raise NotImplementedError("TensorArray.grad: a GradientTape records what the elements are made of")

    def close(self, name=None):
        """No effect."""


class IndexedSlices:
    """Rows of a tensor: values[i] is row indices[i]; the others are 0. It stands for the whole tensor. Gradients of embeddings
    are whole tensors here, which the engine stores as rows."""

    def __init__(self, values, indices, dense_shape=None):
        self.values, self.indices = convert_to_tensor(values), convert_to_tensor(indices)
        self.dense_shape = None if dense_shape is None else convert_to_tensor(dense_shape)

    @property
    def dtype(self):
        """The dtype of the values."""
        return self.values.dtype

    @property
    def shape(self):
        """The shape of the whole tensor; ValueError if it is not known."""
        return tuple(int(n) for n in self._shape())

    def _shape(self):
        if self.dense_shape is None:
            raise ValueError("IndexedSlices: dense_shape is needed to make the whole tensor")
        return self.dense_shape.tolist()

    def dense(self):
        """The whole tensor. Rows of one index are added."""
        return ops.unsorted_segment_sum(self.values, self.indices, int(self._shape()[0]))

    def numpy(self):
        """The whole tensor, as an array."""
        return self.dense().numpy()

    def __array__(self, dtype=None, copy=None):
        return self.numpy() if dtype is None else self.numpy().astype(dtype)
