"""TensorShape and TensorSpec."""
from .. import Loss, Tensor, Variable, TensorSpec as _Spec, float32
from .dtypes import as_dtype


class TensorShape(tuple):
    """The sizes of a tensor, as a tuple; None for a size that varies. While a function is traced, an open size is an Extent,
    which supports arithmetic like a number."""
    __slots__ = ()

    def __new__(cls, dims):
        if dims is None:
            raise ValueError("TensorShape: the number of dimensions is always known here; sizes may be None")
        if isinstance(dims, int):
            dims = (dims,)
        return super().__new__(cls, dims)

    rank = property(len, doc="The number of dimensions.")
    ndims = rank
    dims = property(list, doc="The sizes, as a list.")

    def as_list(self):
        """The sizes, as a list."""
        return list(self)

    def is_fully_defined(self):
        """True if each size is a number."""
        return all(isinstance(size, int) for size in self)

    def num_elements(self):
        """The product of the sizes; None unless all are known."""
        if not self.is_fully_defined():
            return None
        count = 1
        for size in self:
            count *= size
        return count

    def is_compatible_with(self, other):
        """True if a tensor can have both shapes."""
        other = TensorShape(other)
        return len(self) == len(other) and all(a is None or b is None or a == b for a, b in zip(self, other))

    def assert_is_compatible_with(self, other):
        """ValueError unless a tensor can have both shapes."""
        if not self.is_compatible_with(other):
            raise ValueError(f"the shapes {self} and {TensorShape(other)} are not compatible")

    def assert_has_rank(self, rank):
        """ValueError unless there are `rank` dimensions."""
        if len(self) != rank:
            raise ValueError(f"the shape {self} has {len(self)} dimensions, not {rank}")

    def with_rank_at_least(self, rank):
        """The shape; ValueError if there are fewer dimensions."""
        if len(self) < rank:
            raise ValueError(f"the shape {self} has {len(self)} dimensions, at least {rank} are needed")
        return self

    def concatenate(self, other):
        """The sizes of this shape, then those of the other one."""
        return TensorShape((*self, *TensorShape(other)))

    __add__ = concatenate

    def __radd__(self, other):
        return TensorShape(other).concatenate(self)

    def __getitem__(self, key):
        found = super().__getitem__(key)
        return TensorShape(found) if isinstance(key, slice) else found

    def __eq__(self, other):
        return super().__eq__(tuple(other) if isinstance(other, list) else other)

    def __ne__(self, other):
        return not self == other

    __hash__ = tuple.__hash__

    def __repr__(self):
        return f"TensorShape({list(self)})"

    def __str__(self):
        return tuple.__repr__(self)


class TensorSpec(_Spec):
    """The dtype and shape of tensors; None stands for a size that varies."""

    def __new__(cls, shape=None, dtype=float32, name=None):
        if getattr(dtype, "name", dtype) == "string":
            from .text_datasets import StringSpec
            return StringSpec(TensorShape(shape))
        return super().__new__(cls)

    def __init__(self, shape=None, dtype=float32, name=None):
        super().__init__(TensorShape(shape), as_dtype(dtype))
        self.name = name

    @property
    def shape(self):
        return TensorShape(super().shape)

    @classmethod
    def from_tensor(cls, tensor, name=None):
        """The spec of a tensor."""
        return cls(tensor.shape, tensor.dtype, name)

    from_spec = from_tensor

    def is_compatible_with(self, spec_or_tensor):
        """True if the tensor, or tensors of that spec, fit this spec."""
        return self.dtype == spec_or_tensor.dtype and self.shape.is_compatible_with(spec_or_tensor.shape)

    def __reduce__(self):
        return TensorSpec, (self.shape, self.dtype, self.name)

    def __repr__(self):
        name = "" if self.name is None else f", name={self.name!r}"
        return f"TensorSpec(shape={self.shape}, dtype=tf.{self.dtype.name}{name})"


def _get_shape(self):
    """The shape."""
    return self.shape


def _set_shape(self, shape):
    """ValueError unless the shape is compatible with the tensor's, which is always known."""
    self.shape.assert_is_compatible_with(shape)


for _type in (Tensor, Variable, Loss):
    _sizes = _type.shape.fget
    _type.shape = property(lambda self, _sizes=_sizes: TensorShape(_sizes(self)), doc=_type.shape.__doc__)
    _type.get_shape = _get_shape
    _type.set_shape = _set_shape


def type_spec_from_value(value):
    """The spec of a tensor, also of strings and ragged rows on the host."""
    if value.dtype.name == "string" or hasattr(value, "ragged_rank"):
        from .text_datasets import spec_of
        return spec_of(value)
    return TensorSpec(value.shape, value.dtype)
