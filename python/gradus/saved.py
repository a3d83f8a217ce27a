"""Data sets in a directory. elements.json names the kinds of the elements and the files of records, TFRecords, whose checksums
are verified; a record holds the sizes and the bytes of the tensors of one element. Nothing in it is code."""
import os
import re

import numpy as np

from . import _native, nest
from ._native import TensorSpec, constant

_DESCRIPTION = "elements.json"
_FOLDER = "elements-"  # how the folder of the records begins
_FILE_BYTES = 64 << 20  # records are in memory until their file is written


def _described(structure):
    """A nest of None in JSON."""
    if isinstance(structure, dict):
        return {"dict": {str(key): _described(value) for key, value in structure.items()}}
    if isinstance(structure, tuple):
        return {"tuple": [_described(value) for value in structure]}
    return None


def _structure(described):
    if described is None:
        return None
    if "dict" in described:
        return {key: _structure(value) for key, value in described["dict"].items()}
    return tuple(_structure(value) for value in described["tuple"])


def _record(arrays):
    """The sizes of each array, as int64, and its bytes, one array after another."""
    parts = []
    for array in arrays:
        parts += [np.asarray([array.ndim, *array.shape], "<i8").tobytes(), np.ascontiguousarray(array).tobytes()]
    return b"".join(parts)


def _arrays(record, dtypes):
    """The arrays of a record. DataLossError where it does not fit the dtypes."""
    at, arrays = 0, []

    def numbers(count):
        nonlocal at
        if count < 0 or at + 8 * count > len(record):
            raise _native.DataLossError("load: a record is shorter than its tensors")
        at += 8 * count
        return np.frombuffer(record, "<i8", count, at - 8 * count)
    for dtype in dtypes:
        shape = numbers(int(numbers(1)[0])).tolist()
        count = int(np.prod(shape, dtype=np.int64))
        if min(shape, default=0) < 0 or at + count * dtype.itemsize > len(record):
            raise _native.DataLossError("load: a record is shorter than its tensors")
        arrays.append(np.frombuffer(record, np.uint8, count * dtype.itemsize, at).view(dtype).reshape(shape))
        at += count * dtype.itemsize
    if at != len(record):
        raise _native.DataLossError("load: a record is longer than its tensors")
    return arrays


def _require_plain(name, compression, function):
    if compression not in (None, "", "NONE", "AUTO"):
        raise ValueError(f"{name}: records are written as they are: compression is None")
    if function is not None:
        raise ValueError(f"{name}: elements are in one order, in files of one kind: shard_func and reader_func are None")


def save(dataset, path, compression, shard_func):
    """Writes all elements. An older data set in the directory is replaced when the new one is whole."""
    _require_plain("save", compression, shard_func)
    if dataset._count() == -1:
        raise _native.InvalidArgumentError("save: the data set has no end: take(n) gives it one")
    specs = dataset._stages.specs()
    path = os.path.abspath(os.fspath(path))
    os.makedirs(path, exist_ok=True)
    import tempfile  # here, since it loads compression, too
    folder = tempfile.mkdtemp(prefix=_FOLDER, dir=path)
    files, records, size, count = [], [], 0, 0

    def write():
        files.append(f"{len(files):05}.tfrecord")
        _native._write_records(os.path.join(folder, files[-1]), records)
    for fields in dataset._stages.begin():
        records.append(_record([np.asarray(field) for field in fields]))
        size, count = size + len(records[-1]), count + 1
        if size >= _FILE_BYTES:
            write()
            records, size = [], 0
    if records or not files:
        write()
    description = {"version": 1, "folder": os.path.basename(folder), "files": files, "count": count,
                   "structure": _described(dataset._structure),
                   "specs": [{"dtype": spec.dtype.name, "shape": [n if isinstance(n, int) else None for n in spec.shape]}
                             for spec in specs]}
    _replace(path, description)


def _replace(path, description):
    """Writes the description, and removes the folder of the one before."""
    import json
    try:
        before = str(_description(path)["folder"])
    except _native.OpError:  # there is none, or a damaged one
        before = ""
    new = os.path.join(path, f"{description['folder']}.json")
    with open(new, "w", encoding="utf-8") as file:
        json.dump(description, file)
    os.replace(new, os.path.join(path, _DESCRIPTION))
    if re.fullmatch(re.escape(_FOLDER) + r"\w+", before):  # no other folder, whatever the file says
        import shutil
        shutil.rmtree(os.path.join(path, before), ignore_errors=True)


def _description(path):
    import json
    try:
        with open(os.path.join(path, _DESCRIPTION), encoding="utf-8") as file:
            found = json.load(file)
        if found["version"] != 1:
            raise ValueError(f"version {found['version']} of another release")
        found["specs"] = [TensorSpec(spec["shape"], spec["dtype"]) for spec in found["specs"]]
        found["files"] = [os.path.join(path, os.path.basename(found["folder"]), os.path.basename(name))
                          for name in found["files"]]
        return found
    except FileNotFoundError:
        raise _native.UnavailableError(f"load: {path} holds no data set that Dataset.save has written") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _native.DataLossError(f"load: {_DESCRIPTION} of {path}: {error}") from None


def load(kind, path, element_spec, compression, reader_func):
    """The data set of a directory, of the class `kind`. Files are read when elements are needed."""
    _require_plain("load", compression, reader_func)
    found = _description(os.path.abspath(os.fspath(path)))
    structure = _structure(found["structure"])
    specs = found["specs"]
    signature = specs[0] if structure is None else nest.pack_sequence_as(structure, specs)
    if element_spec is not None and nest.flatten(element_spec) != specs:
        raise _native.InvalidArgumentError(f"load: the elements are {signature}, not {element_spec}")
    dtypes = [np.asarray(_native.ops.zeros([0], dtype=spec.dtype)).dtype for spec in specs]

    def elements():
        count = 0
        for file in found["files"]:
            for record in _native._records(file):
                count += 1
                fields = [constant(array) for array in _arrays(record, dtypes)]
                yield fields[0] if structure is None else nest.pack_sequence_as(structure, fields)
        if count != found["count"]:  # records are missing as wholes
            raise _native.DataLossError(f"load: {path} has {count} elements, {found['count']} were saved")
    made = kind.from_generator(elements, output_signature=signature)
    made._asserted = found["count"]
    return made
