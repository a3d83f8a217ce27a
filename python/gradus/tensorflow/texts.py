"""Tensors of strings: bytes in NumPy's arrays, on the host. They have no gradient, and cannot be used in a traced function;
models take numbers, which a lookup makes from them."""
import numpy as np

from .. import _native, constant
from .shapes import TensorShape


class _String:
    """The dtype of texts."""
    name = "string"
    as_numpy_dtype = numpy = np.object_
    is_floating = is_integer = is_bool = is_complex = False

    @property
    def base_dtype(self):
        """The dtype itself."""
        return self

    def is_compatible_with(self, other):
        """True for the same dtype."""
        return other is self or other == "string"

    def __eq__(self, other):
        return isinstance(other, _String) or other == "string" or other is str or other is bytes

    def __hash__(self):
        return hash("string")

    def __repr__(self):
        return "tf.string"

    def __reduce__(self):
        return "string"


string = _String()


def is_string_like(value):
    """True for texts, for arrays of texts, and for nested lists that contain only texts."""
    if isinstance(value, (str, bytes, StringTensor)):
        return True
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "SU" or (value.dtype.kind == "O" and value.size > 0 and
                                            all(isinstance(each, (str, bytes)) for each in value.flat))
    if isinstance(value, np.generic):
        return value.dtype.kind in "SU"
    return isinstance(value, (list, tuple)) and len(value) > 0 and all(is_string_like(each) for each in value)


def _encoded(value):
    return value.encode() if isinstance(value, str) else bytes(value)


_encode = np.vectorize(_encoded, otypes=[object])


def _bare(values):
    """Lists of tensors of strings as lists of their bytes."""
    if isinstance(values, StringTensor):
        return values.tolist()
    return [_bare(each) for each in values] if isinstance(values, (list, tuple)) else values


class StringTensor:
    """A tensor of strings, as bytes. TypeError for values that are no texts or bytes, ValueError for a ragged list."""
    dtype = string
    is_symbolic = False

    def __init__(self, values):
        if isinstance(values, StringTensor):
            self._array = values._array
            return
        try:
            array = np.array(_bare(values), dtype=object)
        except ValueError as error:
            raise ValueError(f"a ragged list of strings: {error}") from None
        if array.size and not all(isinstance(each, (str, bytes)) for each in array.flat):
            raise TypeError("a tensor of strings takes texts and bytes alone; tf.strings.as_string makes texts of numbers")
        self._array = _encode(array) if array.size else array
        if array.ndim == 0:
            self._array = np.array(_encoded(array.item()), dtype=object)

    @classmethod
    def _of_bytes(cls, values, shape):
        """The tensor of a list of bytes, without checks."""
        made = cls.__new__(cls)
        made._array = np.empty(len(values), object)
        made._array[:] = values
        made._array = made._array.reshape(shape)
        return made

    shape = property(lambda self: TensorShape(self._array.shape), doc="The sizes.")
    ndim = property(lambda self: self._array.ndim, doc="The number of dimensions.")

    def get_shape(self):
        """The shape."""
        return self.shape

    def set_shape(self, shape):
        """ValueError unless the shape is compatible with the tensor's, which is always known."""
        self.shape.assert_is_compatible_with(shape)

    def numpy(self):
        """An array of bytes objects; for a scalar, its bytes."""
        return self._array.item() if self._array.ndim == 0 else self._array.copy()

    def __array__(self, dtype=None, copy=None):
        if dtype is not None or copy:
            return self._array.astype(object if dtype is None else dtype)
        seen = self._array.view()
        seen.flags.writeable = False  # the memory is the tensor's, whose value never changes
        return seen

    def item(self):
        """The bytes of the only string. ValueError if there is another number of them."""
        return self._array.item()

    def tolist(self):
        """The bytes, in nested lists."""
        return self._array.tolist()

    def _compared(self, other, operation):
        other = other if isinstance(other, StringTensor) else StringTensor(other) if is_string_like(other) else None
        if other is None:
            return NotImplemented
        return constant(np.asarray(operation(self._array, other._array), bool))

    def __eq__(self, other):
        return self._compared(other, np.equal)

    def __ne__(self, other):
        return self._compared(other, np.not_equal)

    __hash__ = None

    def __add__(self, other):
        return StringTensor(self._array + StringTensor(other)._array)

    def __radd__(self, other):
        return StringTensor(StringTensor(other)._array + self._array)

    def __getitem__(self, key):
        keys = tuple(int(k) if isinstance(k, _native.Tensor) and k.ndim == 0 else
                     k.numpy() if isinstance(k, _native.Tensor) else k for k in (key if isinstance(key, tuple) else (key,)))
        return StringTensor(self._array[keys if isinstance(key, tuple) else keys[0]])

    def __len__(self):
        return len(self._array)

    def __iter__(self):
        return iter([StringTensor(each) for each in self._array])

    def __bool__(self):
        return bool(self._array.item())

    def __fspath__(self):
        return self.item().decode()

    def __str__(self):
        return str(self.numpy())

    def __repr__(self):
        return f"<tf.Tensor: shape={self.shape}, dtype=string, numpy={self.numpy()!r}>"


def text_of(value):
    """A str for a text, bytes or a tensor of one string."""
    value = value.item() if isinstance(value, (StringTensor, np.ndarray, np.generic)) else value
    return value.decode() if isinstance(value, bytes) else str(value)
