"""tf.train.Example: records of features, in the format of protocol buffers."""
import struct

import numpy as np


def _varint(number):
    number &= (1 << 64) - 1
    made = bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    made.append(number)
    return bytes(made)


def _field(number, content):
    """A field of bytes."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _read_varint(data, at):
    number = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ValueError("a record that is cut off")
        byte = data[at]
        number |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return number, at


def _fields(data):
    """(number, value) of each field: bytes, or a number."""
    at = 0
    while at < len(data):
        key, at = _read_varint(data, at)
        if key & 7 == 0:
            value, at = _read_varint(data, at)
        elif key & 7 == 2:
            size, at = _read_varint(data, at)
            value, at = data[at:at + size], at + size
        elif key & 7 in (1, 5):
            size = 8 if key & 7 == 1 else 4
            value, at = data[at:at + size], at + size
        else:
            raise ValueError("a field of a kind that records do not have")
        if at > len(data):
            raise ValueError("a record that is cut off")
        yield key >> 3, value


class _List:
    """A list of values of one kind."""

    def __init__(self, value=()):
        self.value = [self._taken(each) for each in value]

    def __eq__(self, other):
        return type(self) is type(other) and self.value == other.value

    def __repr__(self):
        return f"{type(self).__name__}(value={self.value!r})"


class BytesList(_List):
    """Byte strings."""

    @staticmethod
    def _taken(value):
        value = value.numpy() if hasattr(value, "numpy") else value
        if not isinstance(value, (bytes, bytearray)):
            raise TypeError(f"BytesList: takes bytes, not {type(value).__name__}: 'text'.encode()")
        return bytes(value)

    def _content(self):
        return b"".join(_field(1, each) for each in self.value)

    def _read(self, data):
        self.value = [value for number, value in _fields(data) if number == 1]


class FloatList(_List):
    """Numbers as float32."""

    @staticmethod
    def _taken(value):
        return float(np.float32(value))

    def _content(self):
        return _field(1, struct.pack(f"<{len(self.value)}f", *self.value)) if self.value else b""

    def _read(self, data):
        self.value = [number for key, value in _fields(data) if key == 1
                      for number in struct.unpack(f"<{len(value) // 4}f", value)]


class Int64List(_List):
    """Whole numbers."""

    @staticmethod
    def _taken(value):
        if isinstance(value, float) or int(value) != value:
            raise TypeError(f"Int64List: takes whole numbers, not {value!r}")
        return int(value)

    def _content(self):
        return _field(1, b"".join(map(_varint, self.value))) if self.value else b""

    def _read(self, data):
        found = []
        for key, value in _fields(data):
            at = 0
            while key == 1 and not isinstance(value, int) and at < len(value):
                number, at = _read_varint(value, at)
                found.append(number)
            if key == 1 and isinstance(value, int):
                found.append(value)
        self.value = [n - (1 << 64) if n >> 63 else n for n in found]


class Feature:
    """One of the three lists."""
    _KINDS = {1: ("bytes_list", BytesList), 2: ("float_list", FloatList), 3: ("int64_list", Int64List)}

    def __init__(self, bytes_list=None, float_list=None, int64_list=None):
        given = {1: bytes_list, 2: float_list, 3: int64_list}
        self._kind = next((number for number, each in given.items() if each is not None), None)
        for number, (name, kind) in self._KINDS.items():
            setattr(self, name, kind() if given[number] is None else given[number])

    def WhichOneof(self, name="kind"):
        """The name of the list that is set, or None."""
        return None if self._kind is None else self._KINDS[self._kind][0]

    def list(self):
        """The list that is set, or None."""
        return None if self._kind is None else getattr(self, self._KINDS[self._kind][0])

    def _content(self):
        return b"" if self._kind is None else _field(self._kind, self.list()._content())

    def _read(self, data):
        for number, value in _fields(data):
            if number in self._KINDS:
                self._kind = number
                self.list()._read(value)

    def __repr__(self):
        return f"Feature({self.WhichOneof()}={self.list()!r})"


class Features:
    """Features by name."""

    def __init__(self, feature=None):
        self.feature = dict(feature or {})

    def _content(self):
        return b"".join(_field(1, _field(1, name.encode()) + _field(2, self.feature[name]._content()))
                        for name in sorted(self.feature))

    def _read(self, data):
        for number, entry in _fields(data):
            if number == 1:
                parts = dict(_fields(entry))
                made = self.feature[parts.get(1, b"").decode()] = Feature()
                made._read(parts.get(2, b""))


class Example:
    """A record: features by name."""

    def __init__(self, features=None):
        self.features = Features() if features is None else features

    def SerializeToString(self):
        """The bytes of the record."""
        return _field(1, self.features._content())

    def ParseFromString(self, serialized):
        """Reads a record; ValueError for other bytes. Returns the number of bytes."""
        data = bytes(serialized.numpy() if hasattr(serialized, "numpy") else serialized)
        self.features = Features()
        for number, value in _fields(data):
            if number == 1:
                self.features._read(value)
        return len(data)

    @classmethod
    def FromString(cls, serialized):
        """The record of these bytes."""
        made = cls()
        made.ParseFromString(serialized)
        return made

    def __repr__(self):
        return f"Example({self.features.feature!r})"
