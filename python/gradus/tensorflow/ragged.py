"""tf.ragged: rows of different lengths, on the host. A RaggedTensor holds the values of all rows, one row after the other, and
the index at which each row begins. Functions of tf.strings give it and take it; other ops take its flat_values, or
to_tensor()."""
import numpy as np

from .. import Tensor, constant as _constant, int64
from .dtypes import as_dtype
from .errors import InvalidArgumentError
from .shapes import TensorShape
from .tensors import convert_to_tensor
from .texts import StringTensor, is_string_like, string

_NO_HASH = None


def _array(value):
    """The elements of a tensor, or of a value that becomes one, in an array of NumPy."""
    return value._array if isinstance(value, StringTensor) else np.asarray(value)


def _tensor(array):
    return StringTensor(array) if array.dtype == object else _constant(array)


def _whole(values, name):
    array = np.asarray(convert_to_tensor(values))
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InvalidArgumentError(f"RaggedTensor: {name} is a vector of whole numbers, not {array.dtype} {list(array.shape)}")
    return array.astype(np.int64)


class RaggedTensor:
    """Rows values[row_splits[i]:row_splits[i + 1]], on the host. Values are numbers, strings, or rows themselves.
    InvalidArgumentError for row_splits that do not begin with 0, fall, or do not end with the number of values."""
    is_symbolic = False

    def __init__(self, values, row_splits):
        splits = _whole(row_splits, "row_splits")
        self._values = values if isinstance(values, RaggedTensor) else convert_to_tensor(values)
        count = len(self._values) if isinstance(self._values, RaggedTensor) else int(self._values.shape[0])
        if not splits.size or splits[0] != 0 or splits[-1] != count or np.any(np.diff(splits) < 0):
            raise InvalidArgumentError(f"RaggedTensor: row_splits begin with 0, never fall, and end with the number of values, "
                                       f"{count}; not {splits.tolist()[:10]}")
        self._splits = splits

    # ---- makers

    @classmethod
    def from_row_splits(cls, values, row_splits, name=None, validate=True):
        """Rows that begin and end at row_splits, a vector with one number more than there are rows."""
        return cls(values, row_splits)

    @classmethod
    def from_row_lengths(cls, values, row_lengths, name=None, validate=True):
        """Rows of these lengths."""
        lengths = _whole(row_lengths, "row_lengths")
        return cls(values, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))

    @classmethod
    def from_row_starts(cls, values, row_starts, name=None, validate=True):
        """Rows that begin at these indices, the first at 0."""
        values = values if isinstance(values, RaggedTensor) else convert_to_tensor(values)
        return cls(values, np.append(_whole(row_starts, "row_starts"), len(values)))

    @classmethod
    def from_value_rowids(cls, values, value_rowids, nrows=None, name=None, validate=True):
        """Rows by the row number of each value; the numbers never fall."""
        rows = _whole(value_rowids, "value_rowids")
        count = int(nrows) if nrows is not None else int(rows[-1]) + 1 if rows.size else 0
        if rows.size and (np.any(np.diff(rows) < 0) or rows[0] < 0 or rows[-1] >= count):
            raise InvalidArgumentError(f"RaggedTensor: value_rowids never fall, and are below the number of rows, {count}")
        return cls.from_row_lengths(values, np.bincount(rows, minlength=count))

    @classmethod
    def from_tensor(cls, tensor, lengths=None, padding=None, ragged_rank=1, name=None, row_splits_dtype=int64):
        """The rows of a tensor, cut to these lengths, without the padding at their ends, or whole. ValueError for lengths with
        padding."""
        if lengths is not None and padding is not None:
            raise ValueError("RaggedTensor.from_tensor: lengths or padding, not both")
        array = _array(convert_to_tensor(tensor))
        if not 0 < ragged_rank < array.ndim:
            raise ValueError(f"RaggedTensor.from_tensor: ragged_rank is from 1 to {array.ndim - 1}, not {ragged_rank}")
        if ragged_rank > 1:
            if lengths is not None or padding is not None:
                raise ValueError("RaggedTensor.from_tensor: lengths and padding are for ragged_rank=1")
            within = cls.from_tensor(_tensor(array.reshape(-1, *array.shape[2:])), ragged_rank=ragged_rank - 1)
            return cls.from_row_lengths(within, np.full(array.shape[0], array.shape[1]))
        size = array.shape[1]
        if padding is not None:
            pads = (array == _array(convert_to_tensor(padding))).reshape(array.shape[0], size, -1).all(-1)
            lengths = [int(size - np.argmin(row[::-1])) if not row.all() else 0 for row in pads]
        lengths = np.full(array.shape[0], size) if lengths is None else np.minimum(_whole(lengths, "lengths"), size)
        rows = [array[i, :n] for i, n in enumerate(lengths)]
        return cls.from_row_lengths(_tensor(np.concatenate(rows) if rows else array.reshape(0, *array.shape[2:])), lengths)

    @classmethod
    def from_nested_row_splits(cls, flat_values, nested_row_splits, name=None, validate=True):
        """from_row_splits of several levels, the outermost first."""
        made = flat_values
        for splits in reversed(list(nested_row_splits)):
            made = cls(made, splits)
        return made

    # ---- parts

    values = property(lambda self: self._values, doc="The values of all rows; where these are ragged themselves a RaggedTensor.")
    row_splits = property(lambda self: _constant(self._splits), doc="Where rows begin, and the end of the last.")
    ragged_rank = property(lambda self: 1 + getattr(self._values, "ragged_rank", 0), doc="The number of ragged dimensions.")
    dtype = property(lambda self: self._values.dtype, doc="The dtype of the values.")

    @property
    def flat_values(self):
        """The innermost values, a tensor."""
        return getattr(self._values, "flat_values", self._values)

    @property
    def nested_row_splits(self):
        """row_splits of each level, the outermost first."""
        return (self.row_splits, *getattr(self._values, "nested_row_splits", ()))

    @property
    def shape(self):
        """The sizes; None for sizes that differ between rows."""
        return TensorShape([len(self), None, *self._values.shape[1:]])

    def get_shape(self):
        """The shape."""
        return self.shape

    ndim = property(lambda self: len(self.shape), doc="The number of dimensions.")

    def nrows(self, out_type=int64, name=None):
        """The number of rows."""
        return _constant(len(self), as_dtype(out_type))

    def row_lengths(self, axis=1, name=None):
        """The length of each row."""
        if axis != 1:
            raise ValueError("RaggedTensor.row_lengths: axis is 1; values.row_lengths() has those within")
        return _constant(np.diff(self._splits))

    def row_starts(self, name=None):
        """The index of the first value of each row."""
        return _constant(self._splits[:-1])

    def row_limits(self, name=None):
        """The index after the last value of each row."""
        return _constant(self._splits[1:])

    def value_rowids(self, name=None):
        """The row number of each value."""
        return _constant(np.repeat(np.arange(len(self)), np.diff(self._splits)))

    def bounding_shape(self, axis=None, name=None, out_type=int64):
        """The sizes of the smallest tensor that holds all rows."""
        sizes = self._bounds()
        return _constant(np.array(sizes if axis is None else np.array(sizes)[axis]), as_dtype(out_type))

    def _bounds(self):
        longest = int(np.diff(self._splits).max(initial=0))
        within = self._values._bounds() if isinstance(self._values, RaggedTensor) else list(self._values.shape)
        return [len(self), longest, *(int(n) for n in within[1:])]

    def with_values(self, new_values):
        """The same rows with other values."""
        return RaggedTensor(new_values, self._splits)

    def with_flat_values(self, new_values):
        """The same rows, at all levels, with other innermost values."""
        within = self._values.with_flat_values(new_values) if isinstance(self._values, RaggedTensor) else new_values
        return RaggedTensor(within, self._splits)

    # ---- as others

    def to_tensor(self, default_value=None, name=None, shape=None):
        """A tensor with default_value (0 or the empty string) after the ends of rows, cut or filled to `shape`, in which None
        stands for the longest row."""
        sizes = self._bounds()
        if shape is not None:
            given = list(TensorShape(shape))
            if len(given) != len(sizes):
                raise ValueError(f"RaggedTensor.to_tensor: the shape {given} has {len(given)} dimensions, not {len(sizes)}")
            sizes = [size if want is None else int(want) for size, want in zip(sizes, given)]
        flat = _array(self.flat_values)
        fill = (b"" if flat.dtype == object else 0) if default_value is None else _array(convert_to_tensor(default_value))[()]
        made = np.full(sizes, fill, flat.dtype)
        self._write(made)
        return _tensor(made)

    def _write(self, to):
        whole = None if isinstance(self._values, RaggedTensor) else _array(self._values)
        for i in range(min(len(self), to.shape[0])):
            begin, end = self._splits[i], min(self._splits[i + 1], self._splits[i] + to.shape[1])
            if whole is None:
                self._values._cut(begin, end)._write(to[i, :end - begin])
            else:
                part = whole[begin:end][(slice(None), *(slice(n) for n in to.shape[2:]))]
                to[(i, slice(end - begin), *(slice(n) for n in part.shape[1:]))] = part

    def _cut(self, begin, end):
        """Rows from begin to end."""
        splits = self._splits[begin:end + 1]
        values = self._values
        within = values._cut(splits[0], splits[-1]) if isinstance(values, RaggedTensor) else values[int(splits[0]):int(splits[-1])]
        return RaggedTensor(within, splits - splits[0])

    def to_list(self):
        """The elements, in lists."""
        values = self._values.to_list() if isinstance(self._values, RaggedTensor) else self._values.numpy().tolist()
        return [values[a:b] for a, b in zip(self._splits, self._splits[1:])]

    def numpy(self):
        """An array of the rows as arrays; one array of all elements if all rows have one length."""
        rows = [row.numpy() for row in self]
        if rows and all(row.shape == rows[0].shape and row.dtype == rows[0].dtype for row in rows) and (
                self.ragged_rank == 1 or rows[0].dtype != object or self.dtype == string):
            return np.stack(rows)
        made = np.empty(len(rows), object)
        made[:] = rows
        return made

    def __len__(self):
        return len(self._splits) - 1

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key):
        first, *rest = key if isinstance(key, tuple) else (key,)
        if isinstance(first, slice):
            if first.step not in (None, 1):
                raise ValueError("RaggedTensor: slices of rows have the step 1")
            begin, end, _ = first.indices(len(self))
            found = self._cut(begin, max(begin, end))
            return stack([row[tuple(rest)] for row in found]) if rest else found
        i = int(first)
        if not -len(self) <= i < len(self):
            raise IndexError(f"RaggedTensor: the row {i} of {len(self)} rows")
        i %= len(self)
        begin, end = self._splits[i], self._splits[i + 1]
        row = self._values._cut(begin, end) if isinstance(self._values, RaggedTensor) else self._values[int(begin):int(end)]
        return row[tuple(rest)] if rest else row

    def __eq__(self, other):
        if isinstance(other, RaggedTensor):
            if not all(np.array_equal(a, b) for a, b in zip(self.nested_row_splits, other.nested_row_splits, strict=True)):
                raise InvalidArgumentError("RaggedTensor: the rows of both have the same lengths")
            other = other.flat_values
        return self.with_flat_values(_constant(np.asarray(_array(self.flat_values) == _array(convert_to_tensor(other)), bool)))

    __hash__ = _NO_HASH

    def __repr__(self):
        return f"<tf.RaggedTensor {self.to_list()!r}>"

    def __reduce__(self):
        return _restored, (_array(self.flat_values), [np.asarray(each) for each in self.nested_row_splits])


def _restored(values, splits):
    """A RaggedTensor of a pickle."""
    return RaggedTensor.from_nested_row_splits(_tensor(values), splits)


class RaggedTensorSpec:
    """The shape and dtype of RaggedTensors."""

    def __init__(self, shape=None, dtype="float32", ragged_rank=None, row_splits_dtype=int64):
        self.shape, self.dtype = None if shape is None else TensorShape(shape), as_dtype(dtype)
        self.ragged_rank = 1 if ragged_rank is None else ragged_rank

    def __eq__(self, other):
        return isinstance(other, RaggedTensorSpec) and (self.shape, self.dtype, self.ragged_rank) == (
            other.shape, other.dtype, other.ragged_rank)

    __hash__ = _NO_HASH

    def __repr__(self):
        return f"RaggedTensorSpec({self.shape}, tf.{self.dtype.name}, {self.ragged_rank})"


def _depth(value):
    return 1 + max((_depth(each) for each in value), default=0) if isinstance(value, (list, tuple)) else 0


def _from_lists(rows, depth, dtype):
    """A RaggedTensor of nested lists of this depth: all levels except the last are rows."""
    if depth > 2:
        return RaggedTensor.from_row_lengths(_from_lists([each for row in rows for each in row], depth - 1, dtype), _lengths(rows))
    values = [each for row in rows for each in row]
    if dtype == string or dtype is None and is_string_like(values):
        flat = StringTensor(values if values else np.empty([0], object))
    else:
        flat = _constant(values, as_dtype(dtype or "float32")) if values == [] or dtype is not None else _constant(values)
    return RaggedTensor.from_row_lengths(flat, _lengths(rows))


def _lengths(rows):
    return np.array([len(row) for row in rows], np.int64)


def constant(pylist, dtype=None, ragged_rank=None, inner_shape=None, name=None, row_splits_dtype=int64):
    """A RaggedTensor of nested lists of numbers or strings. ValueError for lists of one level, and for another ragged_rank."""
    if inner_shape is not None:
        raise ValueError("ragged.constant: the innermost lists are rows; RaggedTensor.from_row_lengths takes rows of tensors")
    pylist = pylist.tolist() if isinstance(pylist, np.ndarray) else list(pylist)
    depth = _depth(pylist)
    if depth < 2 or ragged_rank not in (None, depth - 1):
        raise ValueError(f"ragged.constant: a list of {depth} levels has ragged_rank={depth - 1}, at least 1, not {ragged_rank}")
    return _from_lists(pylist, depth, dtype)


def map_flat_values(op, *args, **kwargs):
    """op of the innermost values of RaggedTensors, in the rows of the first of them; without one, op(*args, **kwargs)."""
    given = [each for each in (*args, *kwargs.values()) if isinstance(each, RaggedTensor)]
    if not given:
        return op(*args, **kwargs)

    def flat(value):
        return value.flat_values if isinstance(value, RaggedTensor) else value
    return given[0].with_flat_values(op(*map(flat, args), **{key: flat(value) for key, value in kwargs.items()}))


def stack(values, axis=0, name=None):
    """Tensors of different first sizes, or RaggedTensors, as rows. ValueError without any."""
    if axis != 0:
        raise ValueError("ragged.stack: the axis is 0")
    parts = [each if isinstance(each, (RaggedTensor, StringTensor, Tensor)) else convert_to_tensor(each) for each in values]
    if not parts:
        raise ValueError("ragged.stack: there is nothing to stack")
    if all(not isinstance(each, RaggedTensor) and each.ndim == 0 for each in parts):
        return _tensor(np.stack([_array(each) for each in parts]))
    lengths = [len(each) if isinstance(each, RaggedTensor) else int(each.shape[0]) for each in parts]
    return RaggedTensor.from_row_lengths(_joined(parts), np.array(lengths, np.int64))


def _joined(parts):
    if isinstance(parts[0], RaggedTensor):
        lengths = np.concatenate([np.diff(each._splits) for each in parts])
        return RaggedTensor.from_row_lengths(_joined([each._values for each in parts]), lengths)
    return _tensor(np.concatenate([_array(each) for each in parts]))
