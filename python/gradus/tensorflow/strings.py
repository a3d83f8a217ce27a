"""tf.strings: functions of tensors of strings, on the host, byte by byte unless unit="UTF8_CHAR"."""
import re

import numpy as np

from .. import constant
from .dtypes import as_dtype
from .tensors import convert_to_tensor, is_tensor
from .texts import StringTensor, is_string_like, text_of



def _strings(value):
    return value if isinstance(value, StringTensor) else StringTensor(value)


def _each(function, value, otype=object):
    """function of each string: strings again, or an array."""
    array = _strings(value)._array
    made = np.empty(array.shape, otype)
    for place in np.ndindex(array.shape):
        made[place] = function(array[place])
    return StringTensor(made) if otype is object else constant(made)


def _of_text(function):
    return lambda each: function(each.decode("utf-8", "replace")).encode()


def lower(input, encoding="", name=None):
    """Small letters; of ASCII alone unless encoding is "utf-8"."""
    return _each(_of_text(str.lower) if encoding else bytes.lower, input)


def upper(input, encoding="", name=None):
    """Capital letters; of ASCII alone unless encoding is "utf-8"."""
    return _each(_of_text(str.upper) if encoding else bytes.upper, input)


def strip(input, name=None):
    """Without white space at both ends."""
    return _each(bytes.strip, input)


def length(input, unit="BYTE", name=None):
    """The number of bytes, or of characters for unit="UTF8_CHAR"."""
    count = (lambda each: len(each.decode("utf-8", "replace"))) if unit == "UTF8_CHAR" else len
    return _each(count, input, np.int32)


def substr(input, pos, len, unit="BYTE", name=None):
    """len bytes, or characters, from pos on; a pos below 0 counts from the end, and of a len below 0 all are taken.
    InvalidArgumentError for a pos beyond the end."""
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


def join(inputs, separator="", name=None):
    """The strings of several tensors, one behind the other."""
    arrays = np.broadcast_arrays(*[_strings(each)._array for each in inputs])
    made = np.empty(arrays[0].shape, object)
    for place in np.ndindex(made.shape):
        made[place] = separator.encode().join(array[place] for array in arrays)
    return StringTensor(made)


def reduce_join(inputs, axis=None, keepdims=False, separator="", name=None):
    """The strings along an axis, or all, one behind the other."""
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
    """The parts of one string, [n]. Of a tensor of strings they would be ragged: ValueError unless all have as many."""
    array = _strings(input)._array
    sep = None if sep in (None, "") else StringTensor(sep).item()
    if array.ndim == 0:
        return StringTensor(array.item().split(sep, maxsplit) or np.empty([0], object))
    parts = [each.split(sep, maxsplit) for each in array.ravel()]
    if len({len(each) for each in parts}) > 1:
        raise ValueError("split: the strings have different numbers of parts, and there are no ragged tensors: split them one "
                         "by one, or nn.TextVectorization")
    return StringTensor(np.array(parts, object).reshape(*array.shape, -1))


def bytes_split(input, name=None):
    """The bytes of one string, as strings."""
    text = _strings(input).item()
    return StringTensor([text[i:i + 1] for i in range(len(text))])


def unicode_split(input, input_encoding="UTF-8", errors="replace", replacement_char=65533, name=None):
    """The characters of one string, as strings."""
    return StringTensor([each.encode() for each in _strings(input).item().decode(input_encoding, errors)])


def unicode_decode(input, input_encoding="UTF-8", errors="replace", replacement_char=65533, replace_control_characters=False,
                   name=None):
    """The code points of one string, int32 [n]."""
    return constant(np.array([ord(each) for each in _strings(input).item().decode(input_encoding, errors)], np.int32))


def unicode_encode(input, output_encoding="UTF-8", errors="replace", replacement_char=65533, name=None):
    """The string of code points, of the last axis."""
    points = np.asarray(convert_to_tensor(input))
    made = np.empty(points.shape[:-1], object)
    for place in np.ndindex(made.shape):
        made[place] = "".join(map(chr, points[place].tolist())).encode(output_encoding, errors)
    return StringTensor(made)


def _pattern(pattern):
    """A pattern of RE2 as Python's, which reads the same but for names of classes such as [:punct:]."""
    text = text_of(pattern)
    for name, content in (("punct", r"!-/:-@\[-`{-~"), ("alpha", "A-Za-z"), ("digit", "0-9"), ("alnum", "0-9A-Za-z"),
                          ("space", r"\s"), ("upper", "A-Z"), ("lower", "a-z")):
        text = text.replace(f"[:{name}:]", content)
    text = text.replace(r"\p{P}", r"[!-/:-@\[-`{-~]")
    return re.compile(text)


def _read(each):
    """Bytes as a text, in which a character of UTF-8 is one, as patterns of RE2 count; other bytes stay what they are."""
    return each.decode("utf-8", "surrogateescape")


def regex_replace(input, pattern, rewrite, replace_global=True, name=None):
    """The strings with `rewrite` in place of what the pattern matches; \\1 in it is the first group."""
    compiled, by = _pattern(pattern), text_of(rewrite).replace("\\0", "\\g<0>")
    count = 0 if replace_global else 1
    return _each(lambda each: compiled.sub(by, _read(each), count=count).encode("utf-8", "surrogateescape"), input)


def regex_full_match(input, pattern, name=None):
    """True for strings that the pattern matches as a whole."""
    compiled = _pattern(pattern)
    return _each(lambda each: compiled.fullmatch(_read(each)) is not None, input, bool)


def to_number(input, out_type="float32", name=None):
    """The numbers that the strings write. InvalidArgumentError for one that is none."""
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
    """The numbers as texts: floats with six digits behind the point unless precision says otherwise."""
    if is_string_like(input):
        return _strings(input)
    array = np.asarray(convert_to_tensor(input))
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
    """The template with the inputs in the places of {}."""
    given = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    parts = text_of(template).split(placeholder)
    if len(parts) != len(given) + 1:
        raise ValueError(f"format: {len(parts) - 1} places for {len(given)} inputs")
    shown = [np.array2string(each.numpy(), threshold=2 * summarize, edgeitems=summarize) if is_tensor(each) and each.ndim
             else text_of(each) if is_string_like(each) else str(each) for each in given]
    return StringTensor("".join(a + b for a, b in zip(parts, [*shown, ""])))


def to_hash_bucket_fast(input, num_buckets, name=None):
    """A number from 0 to num_buckets - 1 that follows from the bytes: another one than TensorFlow's, and the same always."""
    import zlib
    return _each(lambda each: zlib.crc32(each) % int(num_buckets), input, np.int64)


to_hash_bucket = to_hash_bucket_fast


def ngrams(data, ngram_width, separator=" ", pad_values=None, padding_width=None, preserve_short_sequences=False, name=None):
    """Neighbouring strings, ngram_width of them joined, of a vector."""
    if pad_values is not None or padding_width is not None or preserve_short_sequences:
        raise ValueError("ngrams: nothing is padded here: join the padding to the data before, and leave out pad_values, "
                         "padding_width and preserve_short_sequences")
    words = _strings(data)._array.ravel().tolist()
    widths = [ngram_width] if isinstance(ngram_width, int) else list(ngram_width)
    found = [separator.encode().join(words[i:i + n]) for n in widths for i in range(len(words) - n + 1)]
    return StringTensor(found) if found else StringTensor(np.empty([0], object))
