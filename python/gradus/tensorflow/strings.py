"""tf.strings: functions of tensors of strings, on the host, byte by byte unless unit="UTF8_CHAR"."""
import re

import numpy as np

from .. import _native, constant
from ..datasets import CallsPython
from .dtypes import as_dtype
from .ragged import RaggedTensor, stack
from .tensors import convert_to_tensor, is_tensor
from .texts import StringTensor, is_string_like, text_of


def _strings(value):
    return value if isinstance(value, StringTensor) else StringTensor(value)


def _each(function, value, otype=object):
    """function(each string), as strings, or as an array of otype. Rows of a RaggedTensor stay rows."""
    if isinstance(value, RaggedTensor):
        return value.with_flat_values(_each(function, value.flat_values, otype))
    array = _strings(value)._array
    made = [function(each) for each in array.ravel().tolist()]
    return StringTensor._of_bytes(made, array.shape) if otype is object else constant(np.array(made, otype).reshape(array.shape))


def _of_text(function):
    return lambda each: function(each.decode("utf-8", "replace")).encode()


def lower(input, encoding="", name=None):
    """The strings in lower case; only ASCII letters change unless encoding is "utf-8"."""
    return _each(_of_text(str.lower) if encoding else bytes.lower, input)


def upper(input, encoding="", name=None):
    """The strings in upper case; only ASCII letters change unless encoding is "utf-8"."""
    return _each(_of_text(str.upper) if encoding else bytes.upper, input)


def strip(input, name=None):
    """The strings without white space at both ends."""
    return _each(bytes.strip, input)


def length(input, unit="BYTE", name=None):
    """The number of bytes, or of characters for unit="UTF8_CHAR", int32."""
    count = (lambda each: len(each.decode("utf-8", "replace"))) if unit == "UTF8_CHAR" else len
    return _each(count, input, np.int32)


def substr(input, pos, len, unit="BYTE", name=None):
    """`len` bytes, or characters, from `pos` on; a negative pos counts from the end, a negative len takes all.
    InvalidArgumentError for a pos beyond the ends."""
    array = _strings(input)._array
    starts, counts = (np.broadcast_to(np.asarray(n), array.shape) for n in (pos, len))
    made = np.empty(array.shape, object)
    for place in np.ndindex(array.shape):
        text = array[place].decode("utf-8", "replace") if unit == "UTF8_CHAR" else array[place]
        begin, size, count = int(starts[place]), text.__len__(), int(counts[place])
        if not -size <= begin <= size:
            from .errors import InvalidArgumentError
            raise InvalidArgumentError(f"substr: pos {begin} is out of range for the string {array[place]!r}, of {size} "
                                       f"{'characters' if unit == 'UTF8_CHAR' else 'bytes'}")
        begin += size if begin < 0 else 0
        part = text[begin:size if count < 0 else begin + count]
        made[place] = part.encode() if unit == "UTF8_CHAR" else part
    return StringTensor(made)


def _parts(value, parts_of, join):
    """join(parts_of(string)) for one string; for a tensor of strings a RaggedTensor with one more dimension."""
    if isinstance(value, RaggedTensor):
        return value.with_flat_values(_parts(value.flat_values, parts_of, join))
    array = _strings(value)._array
    if array.ndim == 0:
        return join(parts_of(array.item()))
    found = [parts_of(each) for each in array.ravel().tolist()]
    made = RaggedTensor.from_row_lengths(join([part for parts in found for part in parts]), np.array([len(each) for each in found], np.int64))
    for i in range(array.ndim - 1, 0, -1):
        made = RaggedTensor.from_row_lengths(made, np.full(int(np.prod(array.shape[:i])), array.shape[i]))
    return made


def _texts(parts):
    return StringTensor._of_bytes(parts, [len(parts)])


def join(inputs, separator="", name=None):
    """The strings of several tensors, joined elementwise with the separator."""
    ragged = [each for each in inputs if isinstance(each, RaggedTensor)]
    if ragged:
        return ragged[0].with_flat_values(join([getattr(each, "flat_values", each) for each in inputs], separator))
    arrays = np.broadcast_arrays(*[_strings(each)._array for each in inputs])
    made = np.empty(arrays[0].shape, object)
    for place in np.ndindex(made.shape):
        made[place] = separator.encode().join(array[place] for array in arrays)
    return StringTensor(made)


def reduce_join(inputs, axis=None, keepdims=False, separator="", name=None):
    """The strings along an axis, or all, joined with the separator."""
    if isinstance(inputs, RaggedTensor):
        if axis not in (1, -1) or inputs.ragged_rank != 1 or keepdims:
            raise ValueError("reduce_join: of a RaggedTensor of two dimensions the axis is 1, without keepdims")
        return StringTensor([reduce_join(row, separator=separator).item() for row in inputs])
    array = _strings(inputs)._array
    if axis is None:
        joined = np.array(separator.encode().join(array.ravel().tolist()), object)
        return StringTensor(joined.reshape((1,) * array.ndim) if keepdims else joined)
    moved = np.moveaxis(array, axis, -1)
    made = np.empty(moved.shape[:-1], object)
    for place in np.ndindex(made.shape):
        made[place] = separator.encode().join(moved[place].tolist())
    return StringTensor(np.expand_dims(made, axis) if keepdims else made)


def split(input, sep=None, maxsplit=-1, name=None):
    """The parts of one string between `sep`, by default white space, [n]; those of a tensor's strings are rows of a
    RaggedTensor."""
    sep = None if sep in (None, "") else StringTensor(sep).item()
    return _parts(input, lambda each: each.split(sep, maxsplit), _texts)


def bytes_split(input, name=None):
    """The bytes of one string, as strings; those of a tensor's strings are rows of a RaggedTensor."""
    return _parts(input, lambda each: [each[i:i + 1] for i in range(len(each))], _texts)


def unicode_split(input, input_encoding="UTF-8", errors="replace", replacement_char=65533, name=None):
    """The characters of one string, as strings; those of a tensor's strings are rows of a RaggedTensor."""
    return _parts(input, lambda each: [character.encode() for character in each.decode(input_encoding, errors)], _texts)


def unicode_decode(input, input_encoding="UTF-8", errors="replace", replacement_char=65533, replace_control_characters=False,
                   name=None):
    """The code points of one string, int32 [n]; those of a tensor's strings are rows of a RaggedTensor."""
    return _parts(input, lambda each: [ord(character) for character in each.decode(input_encoding, errors)],
                  lambda points: constant(np.array(points, np.int32)))


def unicode_encode(input, output_encoding="UTF-8", errors="replace", replacement_char=65533, name=None):
    """The strings of the code points along the last axis."""
    points = np.asarray(convert_to_tensor(input))
    made = np.empty(points.shape[:-1], object)
    for place in np.ndindex(made.shape):
        made[place] = "".join(map(chr, points[place].tolist())).encode(output_encoding, errors)
    return StringTensor(made)


def _pattern(pattern):
    """A pattern of RE2 as one of Python, which differs in names of classes such as [:punct:]."""
    text = text_of(pattern)
    for name, content in (("punct", r"!-/:-@\[-`{-~"), ("alpha", "A-Za-z"), ("digit", "0-9"), ("alnum", "0-9A-Za-z"),
                          ("space", r"\s"), ("upper", "A-Z"), ("lower", "a-z")):
        text = text.replace(f"[:{name}:]", content)
    text = text.replace(r"\p{P}", r"[!-/:-@\[-`{-~]")
    return re.compile(text)


def _read(each):
    """Bytes as a text, so that patterns count characters of UTF-8, as RE2 does; other bytes are kept."""
    return each.decode("utf-8", "surrogateescape")


def regex_replace(input, pattern, rewrite, replace_global=True, name=None):
    """The strings with `rewrite` in place of the matches of the pattern, or of the first one; \\1 in it is the first group."""
    compiled, by = _pattern(pattern), text_of(rewrite).replace("\\0", "\\g<0>")
    count = 0 if replace_global else 1
    return _each(lambda each: compiled.sub(by, _read(each), count=count).encode("utf-8", "surrogateescape"), input)


def regex_full_match(input, pattern, name=None):
    """True for strings that match the pattern as a whole."""
    compiled = _pattern(pattern)
    return _each(lambda each: compiled.fullmatch(_read(each)) is not None, input, bool)


def to_number(input, out_type="float32", name=None):
    """The numbers that the strings contain. InvalidArgumentError for a string that is no number of out_type."""
    from .errors import InvalidArgumentError
    dtype = as_dtype(out_type)
    def number(each):
        if b"_" in each:
            raise ValueError(f"{each!r} is no number")
        value = int(each) if dtype.is_integer else float(each)
        if dtype.is_integer and not np.iinfo(dtype.numpy).min <= value <= np.iinfo(dtype.numpy).max:
            raise ValueError(f"{each!r} is outside of {dtype.name}")
        return value
    try:
        made = np.vectorize(number, otypes=[object])(_strings(input)._array)
    except ValueError as error:
        raise InvalidArgumentError(f"to_number: {error}") from None
    return constant(np.asarray(made, np.int64 if dtype.is_integer else np.float64), dtype)


def as_string(input, precision=-1, scientific=False, shortest=False, width=-1, fill="", name=None):
    """The numbers as texts: floats with six digits after the point by default."""
    if is_string_like(input):
        return _strings(input)
    if getattr(input, "is_symbolic", False):
        raise CallsPython("as_string: strings are on the host, in no traced function")
    array = np.asarray(convert_to_tensor(input))
    if array.dtype.kind == "V":  # bfloat16
        array = array.astype(np.float32)
    if array.dtype.kind == "f":
        kind = "g" if shortest else "e" if scientific else "f"
        form = f"{{:{fill}{width if width > 0 else ''}{'' if precision < 0 else f'.{precision}'}{kind}}}"
    elif array.dtype.kind == "b":
        form = "{}"
    else:
        form = f"{{:{fill}{width if width > 0 else ''}d}}"
    made = np.empty(array.shape, object)
    for place in np.ndindex(array.shape):
        value = array[place].item()
        made[place] = ("true" if value else "false") if array.dtype.kind == "b" else form.format(value)
    return StringTensor(made)


def format(template, inputs, placeholder="{}", summarize=3, name=None):
    """The template with the inputs in place of {}. ValueError for another number of inputs."""
    given = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    parts = text_of(template).split(placeholder)
    if len(parts) != len(given) + 1:
        raise ValueError(f"format: {len(parts) - 1} places for {len(given)} inputs")
    shown = [np.array2string(each.numpy(), threshold=2 * summarize, edgeitems=summarize) if is_tensor(each) and each.ndim
             else text_of(each) if is_string_like(each) else str(each) for each in given]
    return StringTensor("".join(a + b for a, b in zip(parts, [*shown, ""])))


# ---- hashes, with TensorFlow's bits

def _hashes(strings, key=None):
    """The 64-bit hash of each string: FarmHash, or SipHash with a key."""
    return np.frombuffer(_native._string_hashes(strings._array.ravel().tolist(), key), np.uint64)


def _buckets(input, num_buckets, hashes_of):
    if int(num_buckets) <= 0:
        from .errors import InvalidArgumentError
        raise InvalidArgumentError(f"num_buckets is positive, not {num_buckets}")
    if isinstance(input, RaggedTensor):
        return input.with_flat_values(_buckets(input.flat_values, num_buckets, hashes_of))
    strings = _strings(input)
    return constant((hashes_of(strings) % np.uint64(num_buckets)).astype(np.int64).reshape(strings._array.shape))


def to_hash_bucket_fast(input, num_buckets, name=None):
    """The bucket, from 0 to num_buckets - 1, by FarmHash of the bytes, as in TensorFlow. int64."""
    return _buckets(input, num_buckets, _hashes)


def to_hash_bucket_strong(input, num_buckets, key, name=None):
    """The bucket by SipHash with a key of two integers, as in TensorFlow. int64."""
    pair = tuple(int(n) % 2**64 for n in key)
    if len(pair) != 2:
        raise ValueError(f"to_hash_bucket_strong: the key has two numbers, not {len(pair)}")
    return _buckets(input, num_buckets, lambda strings: _hashes(strings, pair))


def _murmur(text):
    """TensorFlow's Hash64, MurmurHash64A with a fixed seed."""
    m, top = 0xc6a4a7935bd1e995, 2**64 - 1
    h = 0xDECAFCAFFE ^ len(text) * m & top
    whole = len(text) // 8 * 8
    for i in range(0, whole, 8):
        k = int.from_bytes(text[i:i + 8], "little") * m & top
        h = (h ^ (k ^ k >> 47) * m & top) * m & top
    if whole < len(text):
        h = (h ^ int.from_bytes(text[whole:], "little")) * m & top
    h = (h ^ h >> 47) * m & top
    return h ^ h >> 47


def to_hash_bucket(input, num_buckets, name=None):
    """The bucket by TensorFlow's older hash. int64."""
    return _buckets(input, num_buckets, lambda strings: np.array([_murmur(each) for each in strings._array.ravel()], np.uint64))


def _crossed(columns, num_buckets, key=0xDECAFCAFFE):
    """The bucket of the combination of the columns' values at each index, as in tf.sparse.cross_hashed: strings by FarmHash,
    integers as they are."""
    factor = np.uint64(0xc6a4a7935bd1e995)

    def mixed(bits):
        return bits ^ bits >> np.uint64(47)
    crossed = np.uint64(key)
    with np.errstate(over="ignore"):
        for column in columns:
            bits = _hashes(column).reshape(column._array.shape) if isinstance(column, StringTensor) else \
                np.asarray(column).astype(np.int64).view(np.uint64)
            crossed = (crossed ^ factor ^ mixed(bits * factor) * factor) * factor
            crossed = mixed(mixed(crossed) * factor)
    return constant((crossed % np.uint64(num_buckets or 2**63 - 1)).astype(np.int64))


# ---- neighbours

def ngrams(data, ngram_width, separator=" ", pad_values=None, padding_width=None, preserve_short_sequences=False, name=None):
    """ngram_width neighbouring strings, joined, of a vector or of each row. pad_values, one string or one for each end, are
    repeated padding_width times, by default ngram_width - 1, at both ends."""
    widths = [ngram_width] if isinstance(ngram_width, int) else list(ngram_width)
    if not widths or min(widths) < 1:
        raise ValueError(f"ngrams: ngram_width is at least 1, not {ngram_width}")
    if padding_width is not None and (pad_values is None or padding_width < 0):
        raise ValueError("ngrams: padding_width is at least 0, and needs pad_values")
    left, right = pad_values if isinstance(pad_values, (list, tuple)) else (pad_values, pad_values)
    if isinstance(data, RaggedTensor) and data.ragged_rank > 1:
        return data.with_values(ngrams(data.values, widths, separator, pad_values, padding_width, preserve_short_sequences))

    def of(row):
        words, found = row._array.ravel().tolist(), []

        def padded(count):
            return [StringTensor(left).item()] * count + words + [StringTensor(right).item()] * count if count else words
        for n in widths:
            line = padded(0 if pad_values is None else min(n - 1 if padding_width is None else padding_width, n - 1))
            found += [separator.encode().join(line[i:i + n]) for i in range(len(line) - n + 1)]
        if not found and words and preserve_short_sequences:
            found = [separator.encode().join(padded(padding_width or 0))]
        return _texts(found)
    if isinstance(data, RaggedTensor):
        return stack([of(row) for row in data]) if len(data) else data
    strings = _strings(data)
    if strings.ndim == 1:
        return of(strings)
    rows = stack([of(row) for row in StringTensor(strings._array.reshape(-1, strings._array.shape[-1]))]).to_tensor("")
    return StringTensor(rows._array.reshape(*strings._array.shape[:-1], -1))
