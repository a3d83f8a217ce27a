"""Callbacks in Python, as the engine calls them."""
from . import _native
from ._logs import Logs, StepLogs
from ._warnings import warn

nn = _native.nn


_NOT_CALLED = ("on_train_batch_begin", "on_test_batch_begin", "on_test_batch_end", "on_predict_begin", "on_predict_end",
               "on_predict_batch_begin", "on_predict_batch_end", "on_batch_begin", "on_batch_end")


def hooks_of(callback, model, optimizer):
    """The methods of a callback as the engine calls them: a dict of functions by name; a callback of the library as it is.
    TypeError for other objects; a RuntimeWarning names methods that a training does not call."""
    if type(callback) is nn.Callback:
        return callback
    if not isinstance(callback, nn.Callback):
        raise TypeError(f"fit: a callback is a nn.Callback, not a {type(callback).__name__}")
    ignored = [name for name in _NOT_CALLED if hasattr(callback, name) and not hasattr(nn.Callback, name)]
    if ignored:
        warn(f"fit: {type(callback).__name__} has {', '.join(ignored)}, which a training does not call: steps run without "
             "Python, and on_train_batch_end alone follows each")
    callback.model, callback.optimizer, callback.stop_training = model, optimizer, False
    first = [None]

    def ends():
        return callback.stop_training or getattr(model, "stop_training", False)

    def of_step(step, loss):
        if first[0] is None:
            first[0] = step
        callback.on_train_batch_end(step - first[0], StepLogs(loss))
        return ends()

    def begin_epoch(epoch):
        first[0] = None
        if hasattr(callback, "on_epoch_begin"):
            callback.on_epoch_begin(epoch, Logs())
        return ends()

    def end_epoch(epoch, logs):
        callback.on_epoch_end(epoch, Logs(logs))
        return ends()
    hooks = {"name": callback.name if callback.name != "callback" else type(callback).__name__, "on_epoch_begin": begin_epoch}
    if hasattr(callback, "on_epoch_end"):
        hooks["on_epoch_end"] = end_epoch
    if hasattr(callback, "on_train_batch_end"):
        hooks["on_step_end"] = of_step
    for name in ("on_train_begin", "on_train_end", "on_test_begin", "on_test_end"):
        if hasattr(callback, name):
            hooks[name] = lambda method=getattr(callback, name): method(Logs())
    if hasattr(callback, "variables"):
        hooks["variables"] = lambda: list(callback.variables)
    return hooks
