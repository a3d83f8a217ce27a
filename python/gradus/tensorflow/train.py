"""tf.train: checkpoints of Variables, and records of examples.

A checkpoint is one file of NumPy's arrays, <prefix>-<number>.npz, which appears whole or not at all, with the state of random
numbers, so that a program goes on with the same bits.
"""
import json
import os
import re
import tempfile
import zipfile

import numpy as np

from .. import Variable, _native, int64
from ..datasets import Iterator
from .examples import BytesList, Example, Feature, Features, FloatList, Int64List  # noqa: F401

nn = _native.nn
_STATE = "gradus/state"
_INDEX = "checkpoint"


# ---- what a checkpoint holds

def _optimizer_variables(optimizer, tracked):
    """The state of an optimizer; made for the models beside it if no step has made it yet."""
    for each in tracked:
        if isinstance(each, nn.Module) and each.built:
            optimizer.build(list(each.trainable_variables))
            break
    return list(optimizer.variables)


def _collect(name, value, tracked, found, iterators, seen):
    """Adds the Variables of an object by name, those of containers and of its parts within."""
    if value is None or id(value) in seen:
        return
    if isinstance(value, Variable):
        found.setdefault(name, value)
        return
    seen.add(id(value))
    if isinstance(value, Iterator):
        iterators[name] = value
    elif isinstance(value, nn.Optimizer):
        for i, each in enumerate(_optimizer_variables(value, tracked)):
            found[f"{name}/{i}"] = each
    elif isinstance(value, (list, tuple)):
        for i, each in enumerate(value):
            _collect(f"{name}/{i}", each, tracked, found, iterators, seen)
    elif isinstance(value, dict):
        for key in sorted(value, key=str):
            _collect(f"{name}/{key}", value[key], tracked, found, iterators, seen)
    elif isinstance(value, Checkpoint):
        for key in sorted(value._tracked):
            _collect(f"{name}/{key}", value._tracked[key], list(value._tracked.values()), found, iterators, seen)
    elif hasattr(value, "variables"):
        variables = value.variables
        for i, each in enumerate(variables() if callable(variables) else variables):
            found[f"{name}/{i}"] = each
    elif hasattr(value, "state") and isinstance(value.state, Variable):
        found[f"{name}/state"] = value.state
    elif hasattr(value, "__dict__"):
        for key in sorted(vars(value)):
            if isinstance(vars(value)[key], (Variable, nn.Module, nn.Optimizer, list, dict)):
                _collect(f"{name}/{key}", vars(value)[key], tracked, found, iterators, seen)


# ---- files

def _as_array(variable):
    """The elements in a dtype that NumPy writes, and the name of their own."""
    array = np.asarray(variable.value().numpy())
    return (array.view(np.uint16) if variable.dtype.name == "bfloat16" else array), variable.dtype.name


def _write(path, arrays):
    """Writes a file that appears whole or not at all."""
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
    path = prefix if str(prefix).endswith(".npz") else f"{prefix}.npz"
    try:
        with open(path, "rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise _native.UnavailableError(f"Checkpoint: there is no file {path}") from None
    except (zipfile.BadZipFile, ValueError, EOFError, OSError) as error:
        raise _native.DataLossError(f"Checkpoint: {path} is damaged: {error}") from error
    if _STATE not in arrays:
        raise _native.DataLossError(f"Checkpoint: {path} is no file of tf.train.Checkpoint")
    notes = json.loads(bytes(arrays.pop(_STATE)).decode())
    for name, dtype in notes["dtypes"].items():
        if dtype == "bfloat16":
            arrays[name] = arrays[name].view(_native.bfloat16.numpy)
    return arrays, notes


def _note_latest(folder, paths):
    text = json.dumps({"latest": os.path.basename(paths[-1]) if paths else None, "all": [os.path.basename(p) for p in paths]})
    temporary = os.path.join(folder, f".{_INDEX}.{os.getpid()}")
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(temporary, os.path.join(folder, _INDEX))


def _noted(folder):
    """The prefixes of the checkpoints that a folder's index names and that exist."""
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
    """(name, shape) of everything in a checkpoint."""
    return [(name, list(array.shape)) for name, array in sorted(_read(_prefix_of(ckpt_dir_or_file))[0].items())]


def load_variable(ckpt_dir_or_file, name):
    """One array of a checkpoint."""
    arrays, _ = _read(_prefix_of(ckpt_dir_or_file))
    if name not in arrays:
        raise KeyError(f"{name!r} is not in the checkpoint: {sorted(arrays)}")
    return arrays[name]


class CheckpointReader:
    """The arrays of a checkpoint, by name."""

    def __init__(self, ckpt_dir_or_file):
        self._arrays, _ = _read(_prefix_of(ckpt_dir_or_file))

    def get_tensor(self, tensor_str):
        """One array; KeyError for a name that is not there."""
        return self._arrays[tensor_str]

    def has_tensor(self, tensor_str):
        """True if the checkpoint has it."""
        return tensor_str in self._arrays

    def get_variable_to_shape_map(self):
        """The shapes by name."""
        return {name: list(array.shape) for name, array in self._arrays.items()}


def load_checkpoint(ckpt_dir_or_file):
    """A CheckpointReader."""
    return CheckpointReader(ckpt_dir_or_file)


def _prefix_of(given):
    return latest_checkpoint(given) or given if os.path.isdir(given) else given


# ---- Checkpoint

class _Status:
    """The result of restoring: what the file and the program did not share."""

    def __init__(self, unused=(), missing=()):
        self._unused, self._missing = sorted(unused), sorted(missing)

    def assert_consumed(self):
        """AssertionError unless everything of the file was restored, into everything of the program."""
        if self._unused or self._missing:
            raise AssertionError(f"Checkpoint: of the file {self._unused} was not used, of the program {self._missing} was not "
                                 "restored")
        return self

    def assert_existing_objects_matched(self):
        """AssertionError unless everything of the program was restored."""
        if self._missing:
            raise AssertionError(f"Checkpoint: not restored: {self._missing}")
        return self

    assert_nontrivial_match = assert_existing_objects_matched

    def expect_partial(self):
        """Parts of the file may be left unused."""
        return self


class Checkpoint:
    """Saves and restores Variables, models, optimizers, iterators of data sets, random generators and what holds them, by
    the names that they have here: Checkpoint(model=model, optimizer=optimizer, step=step). Models are built before they are
    restored: the first call builds them."""

    def __init__(self, root=None, **kwargs):
        self._tracked = dict(kwargs) | ({} if root is None else {"root": root})
        self.save_counter = Variable(0, "save_counter", False, dtype=int64)

    def __getattr__(self, name):
        tracked = self.__dict__.get("_tracked", {})
        if name in tracked:
            return tracked[name]
        raise AttributeError(f"Checkpoint has no {name!r}: it has {sorted(tracked)}", name=name, obj=self)

    def _all(self):
        found, iterators = {"save_counter": self.save_counter}, {}
        tracked = list(self._tracked.values())
        # Models first, so that the state of optimizers is that of their Variables.
        for name in sorted(self._tracked, key=lambda name: isinstance(self._tracked[name], nn.Optimizer)):
            _collect(name, self._tracked[name], tracked, found, iterators, set())
        return found, iterators

    def write(self, file_prefix, options=None):
        """Writes <prefix>.npz; gives the prefix."""
        found, iterators = self._all()
        arrays, dtypes = {}, {}
        for name, variable in found.items():
            arrays[name], dtypes[name] = _as_array(variable)
        notes = {"dtypes": dtypes, "random_state": _native._random_state(), "version": 1,
                 "iterators": {name: list(each._reading.position()) for name, each in iterators.items()}}
        arrays[_STATE] = np.frombuffer(json.dumps(notes).encode(), np.uint8)
        _write(f"{file_prefix}.npz", arrays)
        return str(file_prefix)

    def save(self, file_prefix, options=None):
        """Writes <prefix>-<number>.npz and notes it as the newest; gives the prefix with the number."""
        self.save_counter.assign_add(1)
        prefix = self.write(f"{file_prefix}-{self.save_counter.item()}")
        folder = os.path.dirname(os.path.abspath(prefix))
        _note_latest(folder, [p for p in _noted(folder) if os.path.basename(p) != os.path.basename(prefix)] + [prefix])
        return prefix

    def read(self, save_path, options=None):
        """Restores what the file and the program have in common; ValueError if shapes or dtypes differ, and nothing
        changes. Gives a status. Without a path nothing is restored."""
        if save_path is None:
            return _Status()
        arrays, notes = _read(save_path)
        found, iterators = self._all()
        shared = [name for name in found if name in arrays]
        for name in shared:
            variable, array = found[name], arrays[name]
            if tuple(variable.shape) != array.shape or variable.dtype.name != notes["dtypes"][name]:
                raise ValueError(f"Checkpoint: {name} is {variable.dtype.name}{list(variable.shape)} in the program, "
                                 f"{notes['dtypes'][name]}{list(array.shape)} in {save_path}")
        unbuilt = [name for name, each in self._tracked.items() if isinstance(each, nn.Module) and not each.built
                   and any(key.startswith(f"{name}/") for key in arrays)]
        if unbuilt:
            raise ValueError(f"Checkpoint: {unbuilt} has no Variables yet: build the model or call it once before restore")
        for name in shared:
            found[name].assign(arrays[name])
        for name, position in notes["iterators"].items():
            if name in iterators:
                iterators[name]._go_to(*position)
        _native._set_random_state(notes["random_state"])
        return _Status(set(arrays) - set(found), set(found) - set(arrays))

    def restore(self, save_path, options=None):
        """As read()."""
        return self.read(save_path, options)


class CheckpointManager:
    """Numbered checkpoints in a folder, of which the newest are kept."""

    def __init__(self, checkpoint, directory, max_to_keep, keep_checkpoint_every_n_hours=None, checkpoint_name="ckpt",
                 step_counter=None, checkpoint_interval=None, init_fn=None):
        if max_to_keep is not None and max_to_keep < 1:
            raise ValueError(f"CheckpointManager: max_to_keep is at least 1, or None for all, not {max_to_keep}")
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
        """Writes a checkpoint and removes the oldest ones past max_to_keep; gives its prefix, or None within the interval."""
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
        """Restores the newest checkpoint, or calls init_fn; gives the prefix."""
        if self.latest_checkpoint is not None:
            self._checkpoint.restore(self.latest_checkpoint)
        elif self._init is not None:
            self._init()
        return self.latest_checkpoint
