"""tf.io: files, images, records. Contents are tensors of strings, on the host."""
import glob as _glob
import io as _io
import os

import numpy as np

from .. import _native, bfloat16, constant
from .dtypes import as_dtype
from .errors import AlreadyExistsError, InvalidArgumentError, MissingFileError, NotFoundError, opened
from .examples import Example
from .left_out import Names
from .shapes import TensorShape
from .tensors import convert_to_tensor
from .texts import StringTensor, string, text_of


def _bytes(value):
    return value if isinstance(value, bytes) else StringTensor(value).item()


# ---- files

def read_file(filename, name=None):
    """The contents of a file, a scalar of strings. NotFoundError if there is none, UnavailableError if it cannot be read."""
    path = text_of(filename)
    try:
        with opened(path) as file:
            return StringTensor(file.read())
    except NotFoundError:
        raise
    except OSError as error:
        raise _native.UnavailableError(f"read_file: {error}") from None


def write_file(filename, contents, name=None):
    """Writes a file; its folder is created if it does not exist."""
    path = text_of(filename)
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with opened(path, "wb") as file:
        file.write(_bytes(contents))


def matching_files(pattern, name=None):
    """The names of the files that a pattern matches, in order."""
    found = sorted(_glob.glob(text_of(pattern)))
    return StringTensor(found) if found else StringTensor(np.empty([0], object))


def _open(name, mode="r"):
    """A file, as Python's open() gives it."""
    return _not_found(open)(text_of(name), mode)


def _not_found(call):
    """call(path, ...) of Python, with NotFoundError for a missing file and AlreadyExistsError for an existing one."""
    def called(*args, **kwargs):
        try:
            return call(*args, **kwargs)
        except FileNotFoundError as error:
            raise MissingFileError(str(error)) from None
        except FileExistsError as error:
            raise AlreadyExistsError(str(error)) from None
    return called


def _free(path, overwrite):
    """The path; AlreadyExistsError if the file exists and must not be overwritten."""
    if not overwrite and os.path.exists(text_of(path)):
        raise AlreadyExistsError(f"there is a file {text_of(path)} already; overwrite=True replaces it")
    return text_of(path)


def _copy(src, dst, overwrite=False):
    if not os.path.exists(text_of(src)):
        raise MissingFileError(f"there is no file {text_of(src)}")
    import shutil  # here and below, since the import of the package is short
    shutil.copyfile(text_of(src), _free(dst, overwrite))


def _remove_tree(path):
    import shutil
    shutil.rmtree(text_of(path))


def _matching(pattern):
    """The paths that a pattern, or one of several, matches."""
    patterns = StringTensor(pattern)._array.ravel()
    return sorted({path for each in patterns for path in _glob.glob(text_of(each))})


gfile = Names(
    "gradus.tensorflow.io.gfile", GFile=_open, Open=_open,
    exists=lambda path: os.path.exists(text_of(path)), isdir=lambda path: os.path.isdir(text_of(path)),
    glob=_matching, listdir=_not_found(lambda path: sorted(os.listdir(text_of(path)))),
    makedirs=_not_found(lambda path: os.makedirs(text_of(path), exist_ok=True)), mkdir=_not_found(lambda path: os.mkdir(text_of(path))),
    remove=_not_found(lambda path: os.remove(text_of(path))), rmtree=_not_found(_remove_tree),
    rename=_not_found(lambda src, dst, overwrite=False: os.rename(text_of(src), _free(dst, overwrite))),
    copy=_not_found(_copy),
    join=lambda path, *paths: os.path.join(text_of(path), *map(text_of, paths)),
    walk=lambda top, topdown=True: os.walk(text_of(top), topdown))


# ---- images and sound

def decode_image(contents, channels=None, dtype="uint8", name=None, expand_animations=True):
    """The image of a JPEG or PNG file's contents: [height, width, channels], with the file's channels unless `channels` is 1,
    3 or 4. DataLossError for damaged contents."""
    image = _native._decode_image(_bytes(contents), channels or 0)
    if as_dtype(dtype) == image.dtype:
        return image
    return _native.ops.convert_image_dtype(image, as_dtype(dtype))


def decode_jpeg(contents, channels=0, ratio=1, fancy_upscaling=True, try_recover_truncated=False, acceptable_fraction=1,
                dct_method="", name=None):
    """As decode_image."""
    if ratio != 1:
        raise ValueError("decode_jpeg: ratio is 1: tf.image.resize makes it smaller")
    return decode_image(contents, channels)


def decode_png(contents, channels=0, dtype="uint8", name=None):
    """As decode_image. Elements of 16 bits become 8."""
    if as_dtype(dtype).name != "uint8":
        raise ValueError("decode_png: the elements are uint8")
    return decode_image(contents, channels)


def encode_png(image, compression=-1, name=None):
    """The contents of a PNG file of a uint8 image."""
    return StringTensor(_native._encode_png(image))


def decode_raw(input_bytes, out_type, little_endian=True, fixed_length=None, name=None):
    """The elements in bytes, a vector of out_type. fixed_length is the number of bytes that are read; missing ones are zeros.
    InvalidArgumentError unless the number of bytes is a multiple of the element's."""
    dtype = np.dtype(as_dtype(out_type).numpy)
    data = _bytes(input_bytes)
    if fixed_length is not None:
        if fixed_length <= 0 or fixed_length % dtype.itemsize:
            raise InvalidArgumentError(f"decode_raw: fixed_length is a multiple of {dtype.itemsize} above 0, not "
                                       f"{fixed_length}")
        data = data[:fixed_length].ljust(fixed_length, b"\0")
    if len(data) % dtype.itemsize:
        raise InvalidArgumentError(f"decode_raw: {len(data)} bytes are no multiple of the {dtype.itemsize} of {dtype.name}")
    array = np.frombuffer(data, dtype if little_endian else dtype.newbyteorder(">"))
    return constant(array.astype(dtype))


def serialize_tensor(tensor, name=None):
    """The bytes of a tensor with its dtype and shape, as parse_tensor reads them: NumPy's format."""
    buffer = _io.BytesIO()
    np.save(buffer, convert_to_tensor(tensor).numpy(), allow_pickle=False)
    return StringTensor(buffer.getvalue())


def parse_tensor(serialized, out_type, name=None):
    """The tensor of serialize_tensor's bytes. DataLossError for other bytes, InvalidArgumentError for another dtype than
    out_type."""
    try:
        array = np.load(_io.BytesIO(_bytes(serialized)), allow_pickle=False)
        if array.dtype.kind == "V" and as_dtype(out_type) == bfloat16:  # NumPy's format has no name for it
            array = array.view(bfloat16.numpy)
        found = constant(array)
    except (ValueError, EOFError) as error:
        raise _native.DataLossError(f"parse_tensor: {error}") from None
    if found.dtype != as_dtype(out_type):
        raise InvalidArgumentError(f"parse_tensor: a tensor of {found.dtype.name}, asked for as {as_dtype(out_type).name}")
    return found


# ---- records

class TFRecordOptions:
    """Options of records, which are written without compression. ValueError for a compression_type."""

    def __init__(self, compression_type=None, **kwargs):
        if compression_type not in (None, ""):
            raise ValueError("TFRecordOptions: records are written as they are; gzip is read")


class TFRecordWriter:
    """Writes a file of records, which appears whole with close()."""

    def __init__(self, path, options=None):
        if options not in (None, "") and not isinstance(options, TFRecordOptions):
            TFRecordOptions(options)
        self._path, self._records = text_of(path), []

    def write(self, record):
        """Adds a record, bytes."""
        self._records.append(_bytes(record))

    def flush(self):
        """No effect: the file appears whole."""

    def close(self):
        """Writes the file."""
        if self._records is not None:
            _native._write_records(self._path, self._records)
            self._records = None

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        self.close()  # after an error, too: the records until then are whole


class FixedLenFeature:
    """A feature of one shape."""

    def __init__(self, shape, dtype, default_value=None):
        self.shape, self.dtype, self.default_value = tuple(TensorShape(shape)), dtype, default_value


class FixedLenSequenceFeature:
    """A feature of any number of rows of one shape."""

    def __init__(self, shape, dtype, allow_missing=False, default_value=None):
        self.shape, self.dtype, self.allow_missing = tuple(TensorShape(shape)), dtype, allow_missing
        self.default_value = default_value


def _parsed(name, feature, description):
    """A feature as an array of NumPy, or as a tensor of strings."""
    is_string = description.dtype == string
    kind = "bytes_list" if is_string else "int64_list" if as_dtype(description.dtype).is_integer else "float_list"
    found = None if feature is None else feature.list()
    if found is None or not found.value:
        if isinstance(description, FixedLenSequenceFeature) and description.allow_missing:
            values = []
        elif description.default_value is None:
            raise InvalidArgumentError(f"parse_example: the record has no feature {name!r}, which has no default_value")
        else:
            values = np.ravel(np.asarray(description.default_value, object if is_string else None)).tolist()
            count = int(np.prod(description.shape))
            values = values * count if len(values) == 1 else values
    elif feature.WhichOneof() != kind:
        raise InvalidArgumentError(f"parse_example: the feature {name!r} is a {feature.WhichOneof()}, not a {kind}")
    else:
        values = found.value
    shape = (-1, *description.shape) if isinstance(description, FixedLenSequenceFeature) else description.shape
    try:
        array = np.array(values, object).reshape(shape)
    except ValueError:
        raise InvalidArgumentError(f"parse_example: the feature {name!r} has {len(values)} values for the shape "
                                   f"{list(shape)}") from None
    return array if is_string else array.astype(as_dtype(description.dtype).numpy)


def _tensor(array):
    return StringTensor(array) if array.dtype == object else constant(array)


def parse_single_example(serialized, features, example_names=None, name=None):
    """The features of one record, by name, as FixedLenFeature and FixedLenSequenceFeature describe them. InvalidArgumentError
    for bytes that are no record, and for features that are missing or different."""
    try:
        found = Example.FromString(_bytes(serialized)).features.feature
    except (ValueError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(f"parse_single_example: no record: {error}") from None
    return {key: _tensor(_parsed(key, found.get(key), each)) for key, each in features.items()}


def parse_example(serialized, features, example_names=None, name=None):
    """parse_single_example of each record of a vector, stacked."""
    rows = [parse_single_example(each, features) for each in StringTensor(serialized)]
    return {key: _tensor(np.stack([np.asarray(row[key]) for row in rows])) for key in features}


def decode_csv(records, record_defaults, field_delim=",", use_quote_delim=True, na_value="", select_cols=None, name=None):
    """The columns of one line, or of a vector of lines: a tensor each, in the dtypes of the defaults, which replace empty
    fields. InvalidArgumentError for fields that do not fit."""
    import csv
    lines = StringTensor(records)
    if lines.ndim:
        rows = [decode_csv(line, record_defaults, field_delim, use_quote_delim, na_value, select_cols)
                for line in lines[:].numpy().ravel().tolist()]
        return [_tensor(np.array([each.numpy() for each in column], object if isinstance(column[0], StringTensor) else None)
                        .reshape(lines.shape)) for column in zip(*rows)]
    line = text_of(records)
    fields = next(csv.reader([line], delimiter=field_delim, quoting=csv.QUOTE_MINIMAL if use_quote_delim else csv.QUOTE_NONE), [])
    fields = fields if select_cols is None else [fields[i] for i in select_cols]
    if len(fields) != len(record_defaults):
        raise InvalidArgumentError(f"decode_csv: {len(fields)} fields, {len(record_defaults)} defaults: {line!r}")
    return [_column(field, default, na_value, line) for field, default in zip(fields, record_defaults)]


def _column(field, default, na_value, line):
    default = default[0] if isinstance(default, (list, tuple)) and default else default
    is_type = not isinstance(default, (int, float, str, bytes)) and not hasattr(default, "ndim")
    is_string = isinstance(default, (str, bytes, StringTensor)) or default is string
    if field in ("", na_value):
        if is_type:
            raise InvalidArgumentError(f"decode_csv: an empty field, which has no default: {line!r}")
        return StringTensor(default) if is_string else convert_to_tensor(default)
    if is_string:
        return StringTensor(field)
    dtype = as_dtype(default) if is_type else convert_to_tensor(default).dtype
    try:
        return constant(int(field) if dtype.is_integer else float(field), dtype)
    except ValueError:
        raise InvalidArgumentError(f"decode_csv: {field!r} is no number: {line!r}") from None
