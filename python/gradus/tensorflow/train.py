"""tf.train: checkpoints of Variables, and records of examples.

A checkpoint is one file of NumPy's arrays, <prefix>-<number>.npz, which appears whole or not at all, with the state of random
numbers, so that a program continues with the same bits.
"""
import os
import re
import types

import numpy as np

from .. import Variable, _native, int64
from .._models import Model
from .._training import trained_by
from ..datasets import Dataset, Iterator
from ._seeds import go_to, positions
from .errors import MissingFileError
from .examples import BytesList, Example, Feature, Features, FloatList, Int64List  # noqa: F401
from .tensors import is_tensor
from .text_datasets import TextIterator

nn = _native.nn
_STATE = "gradus/state"
_INDEX = "checkpoint"


# ---- the contents of a checkpoint

_OF_MODEL = ("_inputs", "_options", "_training", "_made_with")


def _is_trackable(value):
    """True for values that a checkpoint can hold: Variables, iterators, containers, and objects with attributes that are no
    functions, classes, data sets or tensors."""
    if isinstance(value, (Variable, Iterator, list, tuple, dict)):
        return True
    if isinstance(value, (type, types.ModuleType, types.FunctionType, types.MethodType, types.GeneratorType, str, bytes,
                          np.ndarray, np.generic, _native.Tensor, Dataset, TextIterator)) or is_tensor(value):
        return False
    return hasattr(value, "__dict__")


class _Contents:
    """The Variables, iterators and optimizers of objects, by their paths of attributes."""

    def __init__(self):
        self.variables, self.iterators, self.optimizers, self._seen = {}, {}, {}, set()

    def add(self, name, value):
        """Adds a value with its attributes or elements; values that cannot be tracked are left out."""
        if isinstance(value, Variable):
            if value.ref() not in self._seen:
                self._seen.add(value.ref())
                self.variables[name] = value
        elif _is_trackable(value) and id(value) not in self._seen:
            self._seen.add(id(value))
            self._within(name, value)

    def _all(self, name, parts):
        for key, each in parts:
            self.add(f"{name}/{key}", each)

    def _within(self, name, value):
        if isinstance(value, Iterator):
            self.iterators[name] = value
        elif isinstance(value, nn.Optimizer):
            self.optimizers[name] = value
            self._all(name, enumerate(value.variables))
        elif isinstance(value, (list, tuple)):
            self._all(name, enumerate(value))
        elif isinstance(value, dict):
            self._all(name, ((key, value[key]) for key in sorted(value, key=str)))
        elif isinstance(value, Checkpoint):
            self._all(name, sorted(value._tracked.items()))
            self.add(f"{name}/save_counter", value.save_counter)
        else:
            self._of_object(name, value)

    def _of_object(self, name, value):
        if not isinstance(value, nn.Module) or isinstance(value, Model):
            self._all(name, ((key, vars(value)[key]) for key in sorted(vars(value)) if key not in _OF_MODEL))
        variables = getattr(value, "variables", ())
        variables = list(variables() if callable(variables) else variables)
        own = [each.name.rsplit("/", 1)[-1] for each in variables]
        for i, each in enumerate(variables):
            self.add(f"{name}/{own[i] if own[i] and own.count(own[i]) == 1 else i}", each)
        if isinstance(getattr(value, "state", None), Variable):
            self.add(f"{name}/state", value.state)

    def trained(self):
        """The names of the Variables that each optimizer updates, in its order, if the checkpoint has all of them."""
        names = {variable.ref(): name for name, variable in self.variables.items()}
        found = {}
        for name, optimizer in self.optimizers.items():
            variables = trained_by(optimizer)
            if variables and all(each.ref() in names for each in variables):
                found[name] = [names[each.ref()] for each in variables]
        return found


# ---- files

def _as_array(variable):
    """The elements in a dtype that NumPy can write, and the name of the Variable's dtype."""
    array = np.asarray(variable.value().numpy())
    return (array.view(np.uint16) if variable.dtype.name == "bfloat16" else array), variable.dtype.name


def _write(path, arrays):
    """Writes a file that appears whole or not at all."""
    import tempfile  # here, since the import of the package is short
    folder = os.path.dirname(os.path.abspath(path))
    os.makedirs(folder, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".being-written-")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _read(prefix):
    """The arrays of a checkpoint, and its notes."""
    import json
    import zipfile
    path = prefix if str(prefix).endswith(".npz") else f"{prefix}.npz"
    try:
        with open(path, "rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise MissingFileError(f"Checkpoint: there is no file {path}") from None
    except (zipfile.BadZipFile, ValueError, EOFError, OSError) as error:
        raise _native.DataLossError(f"Checkpoint: {path} is damaged: {error}") from error
    if _STATE not in arrays:
        raise _native.DataLossError(f"Checkpoint: {path} is no file of tf.train.Checkpoint")
    try:
        notes = json.loads(bytes(arrays.pop(_STATE)).decode())
        for name, dtype in notes["dtypes"].items():
            if dtype == "bfloat16":
                arrays[name] = arrays[name].view(_native.bfloat16.numpy)
        if missing := set(arrays) - set(notes["dtypes"]):
            raise ValueError(f"no dtypes of {sorted(missing)}")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _native.DataLossError(f"Checkpoint: the notes of {path} are damaged: {error}") from error
    return arrays, notes


def _note_latest(folder, paths):
    import json
    text = json.dumps({"latest": os.path.basename(paths[-1]) if paths else None, "all": [os.path.basename(p) for p in paths]})
    temporary = os.path.join(folder, f".{_INDEX}.{os.getpid()}")
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(temporary, os.path.join(folder, _INDEX))


def _noted(folder):
    """The prefixes of the existing checkpoints in a folder's index."""
    import json
    try:
        with open(os.path.join(folder, _INDEX), encoding="utf-8") as file:
            names = json.load(file)["all"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [os.path.join(folder, name) for name in names if os.path.exists(os.path.join(folder, f"{name}.npz"))]


def latest_checkpoint(checkpoint_dir, latest_filename=None):
    """The prefix of the newest checkpoint in a folder, or None."""
    found = _noted(checkpoint_dir)
    return found[-1] if found else None


def list_variables(ckpt_dir_or_file):
    """The list of (name, shape) of all arrays in a checkpoint."""
    return [(name, list(array.shape)) for name, array in sorted(_read(_prefix_of(ckpt_dir_or_file))[0].items())]


def load_variable(ckpt_dir_or_file, name):
    """One array of a checkpoint. KeyError for another name."""
    arrays, _ = _read(_prefix_of(ckpt_dir_or_file))
    if name not in arrays:
        raise KeyError(f"{name!r} is not in the checkpoint: {sorted(arrays)}")
    return arrays[name]


class CheckpointReader:
    """The arrays of a checkpoint, by name."""

    def __init__(self, ckpt_dir_or_file):
        self._arrays, _ = _read(_prefix_of(ckpt_dir_or_file))

    def get_tensor(self, tensor_str):
        """One array. KeyError for another name."""
        return self._arrays[tensor_str]

    def has_tensor(self, tensor_str):
        """True if the checkpoint has this array."""
        return tensor_str in self._arrays

    def get_variable_to_shape_map(self):
        """A dict from names to shapes."""
        return {name: list(array.shape) for name, array in self._arrays.items()}


def load_checkpoint(ckpt_dir_or_file):
    """The CheckpointReader of a file, or of the newest checkpoint in a folder."""
    return CheckpointReader(ckpt_dir_or_file)


def _prefix_of(given):
    return latest_checkpoint(given) or given if os.path.isdir(given) else given


# ---- Checkpoint

class _Status:
    """The result of restoring: the names that only the file or only the program has."""

    def __init__(self, unused=(), missing=()):
        self._unused, self._missing = sorted(unused), sorted(missing)

    def assert_consumed(self):
        """AssertionError unless file and program have the same contents."""
        if self._unused or self._missing:
            raise AssertionError(f"Checkpoint: of the file {self._unused} was not used, of the program {self._missing} was not "
                                 "restored")
        return self

    def assert_existing_objects_matched(self):
        """AssertionError unless all contents of the program were restored."""
        if self._missing:
            raise AssertionError(f"Checkpoint: not restored: {self._missing}")
        return self

    assert_nontrivial_match = assert_existing_objects_matched

    def expect_partial(self):
        """No effect: parts of the file may be unused."""
        return self


class Checkpoint:
    """Saves and restores Variables, models, optimizers, iterators of data sets, random generators and objects that hold them,
    by their paths of attributes: Checkpoint(model=model, optimizer=optimizer, step=step), or checkpoint.model = model. Models
    must be built before they are restored; the first call builds them. Optimizers without state get it for the Variables that
    they had. ValueError for a value that cannot be saved, such as a number or a tensor."""

    def __init__(self, root=None, **kwargs):
        self.__dict__["_tracked"] = {}
        self.__dict__["save_counter"] = Variable(0, "save_counter", False, dtype=int64)
        for name, value in (kwargs if root is None else kwargs | {"root": root}).items():
            setattr(self, name, value)

    def __setattr__(self, name, value):
        if name in self.__dict__:
            raise ValueError(f"Checkpoint: {name!r} is the checkpoint's own; give the attribute another name")
        if not _is_trackable(value):
            raise ValueError(f"Checkpoint: {name} is a {type(value).__name__}, which cannot be saved: a checkpoint holds "
                             "tf.Variables, models, optimizers, iterators of data sets without strings, and lists, dicts and "
                             "objects of these")
        self._tracked[name] = value

    def __delattr__(self, name):
        if name not in self._tracked:
            raise AttributeError(f"Checkpoint has no {name!r}", name=name, obj=self)
        del self._tracked[name]

    def __getattr__(self, name):
        tracked = self.__dict__.get("_tracked", {})
        if name in tracked:
            return tracked[name]
        raise AttributeError(f"Checkpoint has no {name!r}: it has {sorted(tracked)}", name=name, obj=self)

    def _contents(self):
        contents = _Contents()
        contents.add("save_counter", self.save_counter)
        # Models first: an optimizer that holds its Variables, too, does not name them.
        for name in sorted(self._tracked, key=lambda name: (isinstance(self._tracked[name], nn.Optimizer), name)):
            contents.add(name, self._tracked[name])
        return contents

    def _with_optimizers(self, notes):
        """The contents, after optimizers without state have built it for the Variables that those of the file had."""
        contents = self._contents()
        named = {name: names for name, names in notes.get("optimizers", {}).items()
                 if name in contents.optimizers and not trained_by(contents.optimizers[name])}
        for name, names in named.items():
            if all(each in contents.variables for each in names):
                contents.optimizers[name].build([contents.variables[each] for each in names])
        return self._contents() if named else contents

    def write(self, file_prefix, options=None):
        """Writes <prefix>.npz; returns the prefix."""
        import json
        contents = self._contents()
        arrays, dtypes = {}, {}
        for name, variable in contents.variables.items():
            arrays[name], dtypes[name] = _as_array(variable)
        notes = {"dtypes": dtypes, "random_state": _native._random_state(), "seeds": positions(), "version": 2,
                 "optimizers": contents.trained(),
                 "iterators": {name: each._position() for name, each in contents.iterators.items()}}
        arrays[_STATE] = np.frombuffer(json.dumps(notes).encode(), np.uint8)
        _write(f"{file_prefix}.npz", arrays)
        return str(file_prefix)

    def save(self, file_prefix, options=None):
        """Writes <prefix>-<number>.npz and notes it as the newest; returns the prefix with the number."""
        self.save_counter.assign_add(1)
        prefix = self.write(f"{file_prefix}-{self.save_counter.item()}")
        folder = os.path.dirname(os.path.abspath(prefix))
        _note_latest(folder, [p for p in _noted(folder) if os.path.basename(p) != os.path.basename(prefix)] + [prefix])
        return prefix

    def _require_built(self, arrays):
        unbuilt = [name for name, each in self._tracked.items() if isinstance(each, nn.Module) and not each.built
                   and any(key.startswith(f"{name}/") for key in arrays)]
        if unbuilt:
            raise ValueError(f"Checkpoint: {unbuilt} has no Variables yet: build the model or call it once before restore")

    def read(self, save_path, options=None):
        """Restores the contents that the file and the program have in common; returns a status. ValueError if shapes or dtypes
        differ, or a model is not built, and nothing changes. NotFoundError without a file, DataLossError for a damaged one.
        None as the path restores nothing."""
        if save_path is None:
            return _Status()
        arrays, notes = _read(save_path)
        self._require_built(arrays)
        contents = self._with_optimizers(notes)
        found, iterators = contents.variables, contents.iterators
        shared = [name for name in found if name in arrays]
        for name in shared:
            variable, array = found[name], arrays[name]
            if tuple(variable.shape) != array.shape or variable.dtype.name != notes["dtypes"][name]:
                raise ValueError(f"Checkpoint: {name} is {variable.dtype.name}{list(variable.shape)} in the program, "
                                 f"{notes['dtypes'][name]}{list(array.shape)} in {save_path}")
        for name in shared:
            found[name].assign(arrays[name])
        for name, position in notes["iterators"].items():
            if name in iterators:
                iterators[name]._go_to(*position)
        _native._set_random_state(notes["random_state"])
        if "seeds" in notes:
            go_to(notes["seeds"])
        return _Status(set(arrays) - set(found), set(found) - set(arrays))

    def restore(self, save_path, options=None):
        """As read()."""
        return self.read(save_path, options)


class CheckpointManager:
    """Numbered checkpoints in a folder; the newest max_to_keep are kept."""

    def __init__(self, checkpoint, directory, max_to_keep, keep_checkpoint_every_n_hours=None, checkpoint_name="ckpt",
                 step_counter=None, checkpoint_interval=None, init_fn=None):
        if max_to_keep is not None and max_to_keep < 1:
            raise ValueError(f"CheckpointManager: max_to_keep is at least 1, or None for all, not {max_to_keep}")
        if keep_checkpoint_every_n_hours is not None:
            raise ValueError("CheckpointManager: checkpoints are kept by their number alone: leave out "
                             "keep_checkpoint_every_n_hours, or write those that stay with Checkpoint.write")
        self._checkpoint, self.directory, self._most = checkpoint, os.fspath(directory), max_to_keep
        self._name, self._counter, self._interval, self._init = checkpoint_name, step_counter, checkpoint_interval, init_fn
        self._saved_at = None

    @property
    def checkpoint(self):
        """The Checkpoint."""
        return self._checkpoint

    @property
    def checkpoints(self):
        """The prefixes, the oldest first."""
        return [p for p in _noted(self.directory) if re.fullmatch(re.escape(self._name) + r"-\d+", os.path.basename(p))]

    @property
    def latest_checkpoint(self):
        """The prefix of the newest, or None."""
        return self.checkpoints[-1] if self.checkpoints else None

    def save(self, checkpoint_number=None, check_interval=True, options=None):
        """Writes a checkpoint and removes the oldest ones past max_to_keep. Returns its prefix, or None within the
        interval."""
        if check_interval and self._interval is not None and self._saved_at is not None and \
                int(self._counter) - self._saved_at < self._interval:
            return None
        if self._counter is not None:
            self._saved_at = int(self._counter)
        if checkpoint_number is not None:
            self._checkpoint.save_counter.assign(int(checkpoint_number) - 1)
        prefix = self._checkpoint.save(os.path.join(self.directory, self._name))
        kept = self.checkpoints
        while self._most is not None and len(kept) > self._most:
            oldest = kept.pop(0)
            os.unlink(f"{oldest}.npz")
        _note_latest(self.directory, kept)
        return prefix

    def restore_or_initialize(self):
        """Restores the newest checkpoint, or calls init_fn if there is none; returns the prefix, or None."""
        if self.latest_checkpoint is not None:
            self._checkpoint.restore(self.latest_checkpoint)
        elif self._init is not None:
            self._init()
        return self.latest_checkpoint
