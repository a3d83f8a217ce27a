"""tf.lookup: tables from strings or whole numbers to values, on the host."""
import numpy as np

from .. import constant, int64
from .dtypes import as_dtype
from .errors import InvalidArgumentError, opened
from .tensors import convert_to_tensor
from .texts import StringTensor, is_string_like, string, text_of


def _list(values):
    """Keys or values as a list of bytes or numbers, and their dtype."""
    if is_string_like(values):
        return StringTensor(values)._array.ravel().tolist(), string
    tensor = convert_to_tensor(values)
    return tensor.numpy().ravel().tolist(), tensor.dtype


class KeyValueTensorInitializer:
    """Keys and their values."""

    def __init__(self, keys, values, key_dtype=None, value_dtype=None, name=None):
        self.keys, self.key_dtype = _list(keys)
        self.values, self.value_dtype = _list(values)
        if key_dtype is not None and key_dtype != string:
            self.key_dtype = as_dtype(key_dtype)
        if value_dtype is not None and value_dtype != string:
            self.value_dtype = as_dtype(value_dtype)
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
    """A table; keys that are not in it have what _missing() gives."""

    def _fill(self, initializer):
        self.key_dtype, self.value_dtype = initializer.key_dtype, initializer.value_dtype
        self._values = {}
        for key, value in zip(initializer.keys, initializer.values):
            if self._values.setdefault(key, value) != value:
                raise InvalidArgumentError(f"lookup: two values for the key {key!r}")

    def size(self, name=None):
        """The number of entries."""
        return constant(len(self._values), int64)

    def lookup(self, keys, name=None):
        """The values of the keys, in their shape."""
        is_text = is_string_like(keys) or isinstance(keys, StringTensor)
        if is_text != (self.key_dtype == string) or getattr(keys, "dtype", self.key_dtype) != self.key_dtype and not is_text:
            raise TypeError(f"lookup: keys of {'string' if is_text else convert_to_tensor(keys).dtype.name}, the table has keys "
                            f"of {self.key_dtype.name}")
        array = StringTensor(keys)._array if is_text else np.asarray(convert_to_tensor(keys, self.key_dtype))
        made = np.empty(array.shape, object)
        for place in np.ndindex(array.shape):
            key = array[place] if is_text else array[place].item()
            made[place] = self._values[key] if key in self._values else self._missing(key)
        return StringTensor(made) if self.value_dtype == string else constant(made.astype(self.value_dtype.numpy))

    __getitem__ = lookup


class StaticHashTable(_Table):
    """A table that stays, with one value for all other keys."""

    def __init__(self, initializer, default_value, name=None, experimental_is_anonymous=False):
        self._fill(initializer)
        self._default = _list(default_value)[0][0]

    def _missing(self, key):
        return self._default

    def export(self, name=None):
        """The keys and the values."""
        keys, values = list(self._values), list(self._values.values())
        as_tensor = [StringTensor(each) if dtype == string else constant(each, dtype)
                     for each, dtype in ((keys, self.key_dtype), (values, self.value_dtype))]
        return tuple(as_tensor)


class StaticVocabularyTable(_Table):
    """A table to numbers; other keys are spread over num_oov_buckets numbers behind them."""

    def __init__(self, initializer, num_oov_buckets, lookup_key_dtype=None, name=None):
        if num_oov_buckets <= 0:
            raise ValueError(f"StaticVocabularyTable: num_oov_buckets is positive, not {num_oov_buckets}")
        self._buckets = num_oov_buckets
        if initializer is None:
            self._values, self.key_dtype, self.value_dtype = {}, string, int64
        else:
            self._fill(initializer)
            self.value_dtype = int64

    def _missing(self, key):
        import zlib
        return len(self._values) + zlib.crc32(key if isinstance(key, bytes) else str(key).encode()) % self._buckets

    def size(self, name=None):
        """The number of entries, with those for other keys."""
        return constant(len(self._values) + self._buckets, int64)
