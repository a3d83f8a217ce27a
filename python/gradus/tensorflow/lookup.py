"""tf.lookup: tables from strings or integers to values, on the host. A static table from integers to numbers is also an op of
traced functions."""
import numpy as np

from .. import _native, constant, int64, ops
from ..datasets import CallsPython
from .dtypes import as_dtype
from .errors import InvalidArgumentError, opened
from .left_out import Names
from .ragged import RaggedTensor, map_flat_values
from .strings import as_string, to_hash_bucket_fast
from .tensors import convert_to_tensor
from .texts import StringTensor, is_string_like, string, text_of


def _list(values, dtype=None):
    """Keys or values as a list of bytes or numbers, and their dtype."""
    if is_string_like(values) or dtype is not None and as_dtype(dtype) == string:
        return StringTensor(values)._array.ravel().tolist(), string
    tensor = convert_to_tensor(values)
    return tensor.numpy().ravel().tolist(), tensor.dtype if dtype is None else as_dtype(dtype)


def _tensor_of(values, dtype):
    """A list of bytes or numbers as a tensor."""
    if dtype == string:
        return StringTensor(values if len(values) else np.empty([0], object))
    return constant(np.array(values, dtype.numpy))


class KeyValueTensorInitializer:
    """Keys and their values."""

    def __init__(self, keys, values, key_dtype=None, value_dtype=None, name=None):
        self.keys, self.key_dtype = _list(keys, key_dtype)
        self.values, self.value_dtype = _list(values, value_dtype)
        if len(self.keys) != len(self.values):
            raise InvalidArgumentError(f"KeyValueTensorInitializer: {len(self.keys)} keys, {len(self.values)} values")


class TextFileIndex:
    """The part of a line that is a key or a value: the line itself, or its number."""
    WHOLE_LINE, LINE_NUMBER = -2, -1


class TextFileInitializer(KeyValueTensorInitializer):
    """Keys and values of the lines of a file."""

    def __init__(self, filename, key_dtype, key_index, value_dtype, value_index, vocab_size=None, delimiter="\t", name=None,
                 value_index_offset=0):
        with opened(text_of(filename)) as file:
            lines = [line.rstrip(b"\r\n") for line in file][:vocab_size]

        def part(line, number, index, dtype):
            if index == TextFileIndex.LINE_NUMBER:
                return number + value_index_offset
            text = line if index == TextFileIndex.WHOLE_LINE else line.split(delimiter.encode())[index]
            return text if dtype == string else int(text)
        keys = [part(line, i, key_index, key_dtype) for i, line in enumerate(lines)]
        values = [part(line, i, value_index, value_dtype) for i, line in enumerate(lines)]
        super().__init__(keys, values, key_dtype, value_dtype)


class _Table:
    """A table. _missing(keys) gives the values of a vector of keys that are not in it."""
    _as_ops = None

    def _fill(self, initializer):
        self.key_dtype, self.value_dtype = as_dtype(initializer.key_dtype), as_dtype(initializer.value_dtype)
        self._values = {}
        # A user's initializer may have only dtypes: its table is empty.
        for key, value in zip(getattr(initializer, "keys", ()), getattr(initializer, "values", ())):
            if self._values.setdefault(key, value) != value:
                raise InvalidArgumentError(f"lookup: two values for the key {key!r}")

    def size(self, name=None):
        """The number of entries."""
        return constant(len(self._values), int64)

    def _keys(self, keys):
        """The keys as a tensor. TypeError for another dtype than the table's."""
        is_text = is_string_like(keys) or isinstance(keys, StringTensor)
        if is_text != (self.key_dtype == string) or getattr(keys, "dtype", self.key_dtype) != self.key_dtype and not is_text:
            raise TypeError(f"lookup: keys of {'string' if is_text else convert_to_tensor(keys).dtype.name}, the table has keys "
                            f"of {self.key_dtype.name}")
        return StringTensor(keys) if is_text else convert_to_tensor(keys, self.key_dtype)

    def lookup(self, keys, name=None):
        """The values of the keys, in their shape. TypeError for keys of another dtype."""
        if isinstance(keys, RaggedTensor):
            return map_flat_values(self.lookup, keys)
        keys = self._keys(keys)
        if _native._is_traced():
            return self._traced(keys)
        array = np.asarray(keys)
        listed, nothing = array.ravel().tolist(), object()
        found = [self._values.get(key, nothing) for key in listed]
        missing = [i for i, value in enumerate(found) if value is nothing]
        if missing:
            for i, value in zip(missing, self._missing(array.ravel()[missing])):
                found[i] = value
        if self.value_dtype == string:
            return StringTensor._of_bytes(found, array.shape)
        return constant(np.array(found, self.value_dtype.numpy).reshape(array.shape))

    __getitem__ = lookup

    def _traced(self, keys):
        """The values of keys that are symbols, by ops. Else CallsPython, after which functions of tf.data run in Python."""
        raise CallsPython(f"{type(self).__name__}: in a traced function tables take whole numbers to numbers, and do not change: "
                          "look up before, in the map of a data set")


def _by_ops(table, keys, default):
    """The values of integers, or the default, as ops: by a search in the sorted keys."""
    if table._as_ops is None:
        order = sorted(table._values)
        table._as_ops = (np.array(order, table.key_dtype.numpy),
                         np.array([table._values[key] for key in order], table.value_dtype.numpy))
    known, values = table._as_ops
    if not known.size:
        return default
    flat = ops.reshape(keys, [-1])
    places = ops.minimum(ops.searchsorted(constant(known), flat), known.size - 1)
    found = ops.where(ops.equal(ops.gather(constant(known), places), flat), ops.gather(constant(values), places),
                      ops.reshape(default, [-1]))
    return ops.reshape(found, keys.shape)


class StaticHashTable(_Table):
    """A table that does not change, with one value for all other keys."""

    def __init__(self, initializer, default_value, name=None, experimental_is_anonymous=False):
        self._fill(initializer)
        self._default = _list(default_value, self.value_dtype)[0][0]

    def _missing(self, keys):
        return [self._default] * len(keys)

    def _traced(self, keys):
        if string in (self.key_dtype, self.value_dtype):
            return super()._traced(keys)
        return _by_ops(self, keys, ops.zeros_like(ops.cast(keys, self.value_dtype)) + constant(self._default, self.value_dtype))

    def export(self, name=None):
        """The keys and the values."""
        return _tensor_of(list(self._values), self.key_dtype), _tensor_of(list(self._values.values()), self.value_dtype)


class StaticVocabularyTable(_Table):
    """A table from keys to ids; FarmHash maps other keys to num_oov_buckets further ids, as in TensorFlow."""

    def __init__(self, initializer, num_oov_buckets, lookup_key_dtype=None, name=None):
        if num_oov_buckets <= 0:
            raise ValueError(f"StaticVocabularyTable: num_oov_buckets is positive, not {num_oov_buckets}")
        self._buckets = num_oov_buckets
        if initializer is None:
            self._values, self.key_dtype, self.value_dtype = {}, as_dtype(lookup_key_dtype or string), int64
        else:
            self._fill(initializer)
            self.value_dtype = int64

    def _missing(self, keys):
        strings = StringTensor(keys) if self.key_dtype == string else as_string(constant(keys))
        return len(self._values) + to_hash_bucket_fast(strings, self._buckets).numpy()

    def size(self, name=None):
        """The number of ids, with those for other keys."""
        return constant(len(self._values) + self._buckets, int64)


class MutableHashTable(_Table):
    """A table that can be changed, with one value for keys that are not in it. Values are numbers or strings."""

    def __init__(self, key_dtype, value_dtype, default_value, name="MutableHashTable", checkpoint=True,
                 experimental_is_anonymous=False):
        self.key_dtype, self.value_dtype, self._values = as_dtype(key_dtype), as_dtype(value_dtype), {}
        self._default = _list(default_value, self.value_dtype)[0][0]

    def insert(self, keys, values, name=None):
        """Sets the values of keys."""
        found, values = self._listed(keys), _list(values, self.value_dtype)[0]
        if len(found) != len(values):
            raise InvalidArgumentError(f"MutableHashTable.insert: {len(found)} keys, {len(values)} values")
        self._values.update(zip(found, values))

    def remove(self, keys, name=None):
        """Removes keys; keys that are not in the table are ignored."""
        for key in self._listed(keys):
            self._values.pop(key, None)

    def _listed(self, keys):
        if _native._is_traced():
            raise CallsPython("MutableHashTable: it changes on the host, outside of traced functions")
        return np.asarray(self._keys(keys)).ravel().tolist()

    _missing, export = StaticHashTable._missing, StaticHashTable.export


experimental = Names("gradus.tensorflow.lookup.experimental", MutableHashTable=MutableHashTable)
