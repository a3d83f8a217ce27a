"""tf.profiler: profiles for TensorBoard's profile plugin, taken by the engine's own profiler."""
import os
import types

from .. import _native
from ..profiling import ProfileScope, profile
from .left_out import Names

_running = []


class ProfilerOptions(types.SimpleNamespace):
    """TensorFlow's options, without effect: the engine's profiler has no levels."""


def start(logdir, options=None):
    """Begins a profile of this thread. AlreadyExistsError if one runs."""
    if _running:
        from .errors import AlreadyExistsError
        raise AlreadyExistsError("profiler.start: a profile runs already: stop it first")
    _running.append((profile().start(), os.fspath(logdir)))


def stop(save=True):
    """Ends the profile, and with `save` writes it into its directory for TensorBoard's profile plugin. UnavailableError if
    none runs."""
    if not _running:
        raise _native.UnavailableError("profiler.stop: no profile runs: profiler.start(logdir) begins one")
    taken, directory = _running[-1]
    report = taken.stop()  # or an error on another thread; the profile then continues
    _running.pop()
    if save:
        report.save_xplane(directory)


class Profile:
    """`with Profile(logdir):` start and stop around the block."""

    def __init__(self, logdir, options=None):
        self._logdir, self._options = logdir, options

    def __enter__(self):
        start(self._logdir, self._options)

    def __exit__(self, kind, error, traceback):
        stop(save=kind is None)


class Trace:
    """`with Trace("step", step_num=i, _r=1):` a row of the profile for the block; other keywords than the name have no
    effect."""

    def __init__(self, name, **kwargs):
        self._scope = ProfileScope(name)

    def __enter__(self):
        self._scope.__enter__()
        return self

    def __exit__(self, kind, error, traceback):
        self._scope.__exit__(kind, error, traceback)

    def set_metadata(self, **kwargs):
        """No effect: rows have only a name."""


experimental = Names("gradus.tensorflow.profiler.experimental", start=start, stop=stop, Profile=Profile, Trace=Trace,
                     ProfilerOptions=ProfilerOptions)
