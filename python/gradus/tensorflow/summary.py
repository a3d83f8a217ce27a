"""tf.summary: event files for TensorBoard. They are written outside of traced functions, where values are known."""
import contextlib
import threading

import numpy as np

from .. import _native
from .left_out import Names
from .tensors import convert_to_tensor
from .texts import StringTensor

_here = threading.local()


def _state():
    if not hasattr(_here, "writers"):
        _here.writers, _here.step, _here.records = [], None, True
    return _here


class SummaryWriter:
    """A writer of one event file, used by `with writer.as_default():` or set_as_default()."""

    def __init__(self, logdir):
        self._native = _native._SummaryWriter(str(logdir))

    @contextlib.contextmanager
    def as_default(self, step=None):
        """A context whose records go to this file."""
        state = _state()
        before, records = state.step, len(state.writers)
        state.writers.append(self)
        if step is not None:
            state.step = step
        try:
            yield self
        finally:
            del state.writers[records:]
            state.step = before

    def set_as_default(self, step=None):
        """Records go to this file from now on."""
        _state().writers = [self]
        if step is not None:
            _state().step = step

    def init(self):
        """No effect: the file is created with the writer."""

    def flush(self):
        """Nothing: each record is written at once."""

    def close(self):
        """Ends the file."""
        self._native = None


def create_file_writer(logdir, max_queue=None, flush_millis=None, filename_suffix=None, name=None, experimental_trackable=False):
    """A writer of an event file in a folder, which is created if it does not exist."""
    return SummaryWriter(logdir)


class _Noop(SummaryWriter):
    def __init__(self):
        self._native = None


def create_noop_writer():
    """A writer that writes nothing."""
    return _Noop()


def _target(name, step):
    """The writer and the step, or None if nothing is to be written. ValueError without a step."""
    state = _state()
    records = state.records() if callable(state.records) else state.records
    if not state.writers or not bool(records) or state.writers[-1]._native is None:
        return None
    step = state.step if step is None else step
    if step is None:
        raise ValueError(f"tf.summary: {name!r} has no step: give step=, or tf.summary.experimental.set_step(n)")
    if _native._is_traced():
        raise _native.UnknownValueError("tf.summary: values are not known while a function is traced: give them back from the "
                                        "function, and write them outside of it")
    return state.writers[-1]._native, int(step)


def scalar(name, data, step=None, description=None):
    """Writes a number. Returns True if it was written."""
    target = _target(name, step)
    if target:
        target[0].scalar(name, target[1], float(data))
    return bool(target)


def histogram(name, data, step=None, buckets=None, description=None):
    """Writes a histogram of 30 classes of equal width. Returns True if it was written."""
    target = _target(name, step)
    if target:
        target[0].histogram(name, target[1], convert_to_tensor(data))
    return bool(target)


def image(name, data, step=None, max_outputs=3, description=None):
    """Writes at most max_outputs of the images [k, height, width, channels], uint8 or floats from 0 to 1. Returns True if they
    were written."""
    target = _target(name, step)
    if target:
        images = convert_to_tensor(data).numpy()
        if images.dtype != np.uint8:
            images = (np.clip(images.astype(np.float32), 0, 1) * 255).astype(np.uint8)
        for i, each in enumerate(images[:max_outputs]):
            target[0].image(name if len(images) == 1 else f"{name}/image/{i}", target[1], each)
    return bool(target)


def _text(name, data, step, plugin, content):
    """Writes a text for a plugin of TensorBoard."""
    target = _target(name, step)
    if target:
        target[0].text(name, target[1], data, plugin, content)
    return bool(target)


def text(name, data, step=None, description=None):
    """Writes a text in Markdown, or the texts of a tensor as paragraphs. Returns True if it was written."""
    texts = [each.decode("utf-8", "replace") for each in StringTensor(data)._array.ravel().tolist()]
    return _text(name, "\n\n".join(texts), step, "text", "")


@contextlib.contextmanager
def record_if(condition):
    """A context in which records are written only if the condition, a boolean or a function, is true."""
    state = _state()
    before, state.records = state.records, condition
    try:
        yield
    finally:
        state.records = before


def should_record_summaries():
    """True if records are written now."""
    state = _state()
    return bool(state.writers) and bool(state.records() if callable(state.records) else state.records)


def flush(writer=None, name=None):
    """Nothing: each record is written at once."""


def _set_step(step):
    _state().step = step


def _get_step():
    return _state().step


experimental = Names(
    "gradus.tensorflow.summary.experimental", set_step=_set_step, get_step=_get_step)
