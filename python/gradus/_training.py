"""compile, fit, evaluate and predict of gradus.nn: what the engine is told of a training, and callbacks in Python."""
import math
import os
import re
import weakref

import numpy as np

from . import _native, nest
from ._models import _PLACE, Model, reduce_layer
from ._elements import _nested
from ._warnings import warn
from .datasets import Dataset

nn = _native.nn


# ---- parts by name

def _in_words(name):
    """SparseCategoricalCrossentropy as sparse_categorical_crossentropy."""
    name = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    return re.sub(r"([A-Z])([A-Z][a-z])", r"\1_\2", name).lower()


def _named(base):
    """The classes of a kind by their names in small letters, with and without underscores."""
    found = {}
    for name, made in vars(nn).items():
        if isinstance(made, type) and issubclass(made, base) and made is not base:
            found[_in_words(name)] = found[name.lower()] = made
    return found


_SHORT = {"mse": "mean_squared_error", "mae": "mean_absolute_error", "mape": "mean_absolute_percentage_error",
          "msle": "mean_squared_logarithmic_error", "kld": "kl_divergence", "bce": "binary_crossentropy",
          "logcosh": "log_cosh"}
_OF_PROBABILITIES = {"from_logits": False}


def _with_defaults(make, what):
    """make() with the library's defaults; what asks for logits or probabilities takes the latter, as Keras does by a name.
    ValueError where an argument is needed that no name says."""
    try:
        return make()
    except TypeError as error:
        try:
            return make(**_OF_PROBABILITIES)
        except TypeError:
            raise ValueError(f"compile: {what} needs arguments: give the object: {error}") from None


def _function(name):
    """The library's function of (y, prediction) of this name, of probabilities; None if there is none."""
    f = getattr(nn, name, None) if name in _FUNCTIONS else None
    if f is None or not name.endswith("crossentropy"):
        return f
    of_probabilities = lambda y, prediction: f(y, prediction, **_OF_PROBABILITIES)  # noqa: E731
    return f if name.endswith("cross_entropy") else of_probabilities


# Losses of the library that are functions of one row; those of Keras's metrics are among them.
_FUNCTIONS = frozenset("""binary_crossentropy binary_focal_crossentropy categorical_crossentropy categorical_focal_crossentropy
categorical_generalized_cross_entropy categorical_hinge cosine_similarity hinge huber kl_divergence log_cosh
mean_absolute_error mean_absolute_percentage_error mean_squared_error mean_squared_logarithmic_error poisson
sparse_categorical_crossentropy squared_hinge""".split())


def _unknown(kind, given, known):
    import difflib  # only where a name is not known: imports take time
    near = difflib.get_close_matches(given.lower(), known, n=1)
    return ValueError(f"compile: there is no {kind} {given!r}" + (f"; did you mean {near[0]!r}?" if near else ""))


def _made(kind, base, given):
    """An object of the library, or that of a name: a class's, in small letters or not, or that of a function."""
    if not isinstance(given, str):
        return given
    known = _named(base)
    name = _SHORT.get(given.lower(), given.lower())
    if name in known:
        return _with_defaults(known[name], f"the {kind} {given!r}")
    raise _unknown(kind, given, [*known, *(_FUNCTIONS if kind == "loss" else ())])


def _loss(given):
    """A loss: an object, a function, or the name of one. A metric that is a loss's mean stands for that loss."""
    name = given if isinstance(given, str) else _in_words(type(given).__name__) if isinstance(given, nn.Metric) else None
    if name is None:
        return given
    f = _function(_SHORT.get(name.lower(), name.lower())) or _function(_in_words(name))
    if f is not None and (not isinstance(given, str) or _SHORT.get(name.lower(), name.lower()) not in _named(nn.LossFunction)):
        return nn.PerExampleLoss(f)
    if not isinstance(given, str):
        raise TypeError(f"compile: the metric {type(given).__name__} is no loss")
    return _made("loss", nn.LossFunction, given)


_ACCURACIES = {"SparseCategoricalCrossentropy": "SparseCategoricalAccuracy", "CategoricalCrossentropy": "CategoricalAccuracy"}


def _accuracy(loss, named):
    """The accuracy of a loss, which was given as `named`."""
    if type(loss).__name__ == "BinaryCrossentropy" and isinstance(named, str):
        return nn.BinaryAccuracy(**_OF_PROBABILITIES)
    kind = _ACCURACIES.get(type(loss).__name__)
    if kind is None:
        raise ValueError(f"compile: the accuracy of {type(loss).__name__} is not determined: give a metric, such as "
                         "nn.BinaryAccuracy(from_logits=True)")
    return getattr(nn, kind)()


def _metric(given, loss, named):
    """A metric; "accuracy" is that of the loss, which was given as `named`."""
    if callable(given) and not isinstance(given, nn.Metric):
        return nn.Metric(getattr(given, "__name__", "metric"), given)
    if not isinstance(given, str):
        return given
    name = _SHORT.get(given.lower(), given.lower())
    if name in ("accuracy", "acc"):
        return _accuracy(loss, named)
    known = _named(nn.Metric)
    if name in known:
        return _with_defaults(known[name], f"the metric {given!r}")
    f = _function(name) or _function(_in_words(given))
    if f is None:
        raise _unknown("metric", given, [*known, *_FUNCTIONS])
    if name.replace("_", "") == "cosinesimilarity":  # as a metric it grows with the likeness, as a loss it falls
        return nn.Metric("cosine_similarity", lambda y, prediction: -f(y, prediction))
    return nn.Metric(_in_words(given) if given.lower() not in _SHORT else name, f)


# ---- numbers of a training

class Logs(dict):
    """Numbers by name. Those of the validation have `validation_` before them, and are found by Keras's `val_`, too."""

    def __missing__(self, name):
        if isinstance(name, str) and name.startswith("val_"):
            return self["validation_" + name[4:]]
        import difflib  # only where a name is not known: imports take time
        near = difflib.get_close_matches(str(name), self, n=1)
        raise KeyError(f"{name!r}" + (f"; did you mean {near[0]!r}?" if near else f"; there are {sorted(self)}"))

    def __contains__(self, name):
        is_keras = isinstance(name, str) and name.startswith("val_")
        return super().__contains__(name) or is_keras and super().__contains__("validation_" + name[4:])

    def get(self, name, default=None):
        """The number, or `default` where there is none."""
        try:
            return self[name]
        except KeyError:
            return default


class History:
    """The numbers of a training: `history` has a list for each name, one number an epoch."""

    def __init__(self, numbers, first_epoch):
        self.history = Logs(numbers)
        self.epoch = list(range(first_epoch, first_epoch + len(self.history.get("seconds", []))))

    def __getitem__(self, name):
        return self.history[name]

    def __repr__(self):
        return f"<History of {len(self.epoch)} epochs: {', '.join(self.history)}>"


# ---- callbacks

class _StepLogs(dict):
    """The loss of a step, which is waited for when it is asked for."""

    def __init__(self, loss):
        super().__init__()
        self._loss = loss

    def __missing__(self, name):
        if name != "loss":
            raise KeyError(name)
        self["loss"] = float(self._loss)
        return self["loss"]

    def get(self, name, default=None):
        """The number, or `default` where there is none."""
        return self[name] if name == "loss" else default


_NOT_CALLED = ("on_train_batch_begin", "on_test_batch_begin", "on_test_batch_end", "on_predict_begin", "on_predict_end",
               "on_predict_batch_begin", "on_predict_batch_end", "on_batch_begin", "on_batch_end")


def _hooks(callback, model, optimizer):
    """The methods of a callback as the engine calls them; others of Python's are functions of theirs."""
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
        callback.on_train_batch_end(step - first[0], _StepLogs(loss))
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


# ---- data

def _split(x, y, sample_weight, share):
    """The first rows of arrays, for training, and the last ones, as much of them as `share`, for the validation."""
    parts = [None if each is None else _nested(each) for each in (x, y, sample_weight)]
    rows = len(nest.flatten(parts[0])[0])
    first = math.floor(rows * (1 - share))  # as in Keras
    if not 0 < first < rows:
        raise ValueError(f"fit: validation_split is above 0 and below 1, and leaves rows to both parts; {share} of {rows} "
                         "rows does not")

    def part(place):
        return [None if each is None else nest.map_structure(lambda t: t[place], each) for each in parts]
    return part(slice(first)), part(slice(first, None))


def _dataset(x, y, sample_weight, batch_size, shuffle):
    """The data set of arrays, or the one that was given."""
    if isinstance(x, Dataset):
        if y is not None or sample_weight is not None:
            raise ValueError("fit: a data set has y and weights in its elements: (x, y), (x, y, sample_weight)")
        return x
    element = (x,) if y is None else (x, y) if sample_weight is None else (x, y, sample_weight)
    rows = Dataset.from_tensor_slices(element)
    return (rows.shuffle(len(rows)) if shuffle and len(rows) else rows).batch(32 if batch_size is None else batch_size)


def _of_generator(x):
    """A data set of the batches that an iterator gives, whose first one tells their kind; it is read once."""
    if isinstance(x, (Dataset, np.ndarray, list, tuple, dict)) or not hasattr(x, "__next__"):
        return x
    first = nest.map_structure(_native.constant, next(x))
    specs = nest.map_structure(lambda t: _native.TensorSpec([None, *t.shape[1:]] if t.ndim else [], t.dtype), first)

    def all_of():
        yield first
        yield from x
    return Dataset.from_generator(all_of, output_signature=specs)


_NOTHING = object()


def _parts(structure):
    """The structures of x and of y, _NOTHING where there is none, and True if there is a weight."""
    if not isinstance(structure, tuple) or len(structure) > 3 or hasattr(structure, "_fields"):
        return structure, _NOTHING, False
    return structure[0], structure[1] if len(structure) > 1 else _NOTHING, len(structure) == 3


def _count(structure):
    return len(nest.flatten(structure))


# ---- plans

def _arguments(structure, tensors):
    """The arguments of a model: the parts of a tuple are several."""
    nested = tensors[0] if not nest.is_nested(structure) else nest.pack_sequence_as(structure, tensors)
    return nested if isinstance(nested, tuple) else (nested,)


def _remember_inputs(model, structure):
    """The nest of its inputs, for a model that is built before it is called."""
    if isinstance(model, Model):
        nested = nest.map_structure(lambda _: _PLACE, structure)
        model._inputs = nested if isinstance(nested, tuple) else (nested,)
        model._options = {}


def _output_names(outputs):
    """The names of several outputs, in the order of nests; None for one tensor."""
    if isinstance(outputs, dict):
        return [str(name) for name in sorted(outputs)]
    if isinstance(outputs, (list, tuple)):
        return list(getattr(outputs, "_fields", None) or [f"output_{i}" for i in range(len(outputs))])
    return None


def _by_output(given, names):
    """Losses or weights by the names of outputs: those of a dict, or of a list in their order."""
    if isinstance(given, dict):
        return dict(given)
    if isinstance(given, (list, tuple)):
        if len(given) != len(names):
            raise ValueError(f"compile: {len(given)} losses or weights for the outputs {names}")
        return dict(zip(names, given))
    return {name: given for name in names}


def _plan(model, structure, settings):
    """A training as the engine sees it: a model and its loss, for elements of this structure."""
    x, y, is_weighted = _parts(structure)
    inputs = _count(x)
    plan = {"inputs": inputs, "fields": _count(structure), "is_weighted": is_weighted}
    _remember_inputs(model, x)

    def outputs_of(tensors):
        found = model(*_arguments(x, tensors))
        return nest.flatten(found) if nest.is_nested(found) else found
    plan["call"] = outputs_of
    if hasattr(model, "train_step") or hasattr(model, "test_step"):
        for name, step in (("train", "train_step"), ("test", "test_step")):
            if hasattr(model, step):
                plan[name] = lambda fields, step=getattr(model, step): step(
                    fields[0] if structure is None else nest.pack_sequence_as(structure, fields))
        return plan
    loss = settings.loss
    if y is _NOTHING:
        raise ValueError("fit: an element of the data set is (x, y) or (x, y, sample_weight); this one is x alone")
    if loss is None:
        raise ValueError("fit: the model has no loss: model.compile(optimizer, loss)")
    if nest.is_nested(y) or isinstance(loss, (dict, list, tuple)):
        names = _output_names(y) or list(loss)
        losses = {name: _loss(each) for name, each in _by_output(loss, names).items()}
        factors = settings.loss_weights
        plan |= {"outputs": names, "losses": losses, "loss_weights": _by_output(factors, names) if factors else {}}
    else:
        plan["loss"] = loss
    return plan


class _Settings:
    """The arguments of compile()."""

    def __init__(self, optimizer, loss, metrics, loss_weights, weighted_metrics, strategy):
        self.optimizer = _made("optimizer", nn.Optimizer, optimizer)
        self.loss = _loss(loss)
        self.metrics = [_metric(each, self.loss, loss) for each in metrics or ()]
        self.weighted_metrics = [_metric(each, self.loss, loss) for each in weighted_metrics or ()]
        self.loss_weights, self.strategy = loss_weights, strategy

    def options(self):
        """Options of fit and evaluate."""
        made = {"metrics": self.metrics, "weighted_metrics": self.weighted_metrics}
        return made if self.strategy is None else made | {"strategy": getattr(self.strategy, "_strategy", self.strategy)}


def _settings(model, what):
    settings = model.__dict__.get("_training")
    if settings is None:
        raise RuntimeError(f"{what}: compile(optimizer, loss) comes before it")
    return settings


# ---- methods of models

def compile_(self, optimizer="rmsprop", loss=None, metrics=None, loss_weights=None, weighted_metrics=None, strategy=None):
    """Sets how the model is trained. optimizer, loss and metrics are objects of gradus.nn, or their names ("adam",
    "mean_squared_error", "accuracy"); a loss may be a function of (y, prediction), and a name means predictions that are
    probabilities. A model of several outputs has a dict or list of losses. Steps run on the devices of `strategy`."""
    self._training = _Settings(optimizer, loss, metrics, loss_weights, weighted_metrics, strategy)


def fit(self, x=None, y=None, batch_size=None, epochs=1, verbose=True, callbacks=None, validation_split=0.0,
        validation_data=None, shuffle=True, class_weight=None, sample_weight=None, initial_epoch=0, steps_per_epoch=None,
        validation_freq=1, micro_batch=0, checkpoints=None, fast_dev_run=0, unbatched=False):
    """Trains the model, and gives its History.

    Args:
        x: arrays with y and sample_weight beside them, a Dataset of batches (x, y) or (x, y, sample_weight), or an
            iterator of those. x may be a tuple, whose parts are the model's arguments, or a dict.
        callbacks: nn.Callback objects, those of the library (nn.early_stopping(...)) and of one's own.
        validation_data: (x, y), (x, y, sample_weight) or a Dataset.
        micro_batch: rows at a time, whose gradients add up to those of the batch.
        checkpoints: a directory: a training that was ended goes on from there, with the same bits. Or a dict of directory,
            max_to_keep, every_steps.
        fast_dev_run: a trial of so many steps.
        unbatched: elements are meant as they are, though no batch() made them.
    """
    settings = _settings(self, "fit")
    is_own = not isinstance(x, Dataset) and hasattr(x, "__next__")
    if validation_split and validation_data is None and not is_own and not isinstance(x, Dataset):
        (x, y, sample_weight), validation_data = _split(x, y, sample_weight, validation_split)
        validation_split = 0.0
    data = _dataset(_of_generator(x), y, sample_weight, batch_size, shuffle)
    plan = _plan(self, data._structure, settings)
    self.stop_training = False
    options = settings.options() | {
        "epochs": epochs, "initial_epoch": initial_epoch, "steps_per_epoch": steps_per_epoch or 0,
        "validation_split": validation_split, "validation_freq": validation_freq, "micro_batch": micro_batch,
        "verbose": bool(verbose), "fast_dev_run": fast_dev_run, "sample_weight": plan["is_weighted"],
        "unbatched": unbatched or is_own, "callbacks": [_hooks(each, self, settings.optimizer) for each in callbacks or ()]}
    if class_weight is not None:
        options["class_weight"] = plan["class_weight"] = dict(class_weight)
    if validation_data is not None:
        given = validation_data if isinstance(validation_data, (list, tuple)) else (validation_data,)
        options["validation"] = _dataset(*given, *[None] * (3 - len(given)), batch_size, False)._stages
    if checkpoints is not None:
        options["checkpoints"] = checkpoints if isinstance(checkpoints, dict) else {"directory": checkpoints}
    _native._show_progress()
    try:
        numbers = _native._fit(self, settings.optimizer, plan, data._stages, options)
    finally:
        if self.built:
            _note_trained(settings.optimizer, self.trainable_variables)
    return History(numbers, initial_epoch)


def evaluate(self, x=None, y=None, batch_size=None, sample_weight=None, unbatched=False):
    """The loss and the metrics of the data, by name, in inference mode. Data as for fit."""
    settings = _settings(self, "evaluate")
    data = _dataset(x, y, sample_weight, batch_size, False)
    plan = _plan(self, data._structure, settings)
    return Logs(_native._evaluate(self, plan, data._stages, settings.options() | {"unbatched": unbatched}))


def predict(self, x, batch_size=None, verbose="auto", steps=None, callbacks=None, unbatched=False):
    """The model's results for all rows of arrays or of a Dataset's elements, x or (x, ...), in inference mode: a tensor, or
    a nest of them. `steps` batches at most. It prints nothing and calls no callbacks: verbose is there for programs of
    Keras, callbacks are a ValueError."""
    if callbacks:
        raise ValueError("predict: there are no callbacks here: loop over the batches, and call the model")
    data = x if isinstance(x, Dataset) else Dataset.from_tensor_slices((x,)).batch(256 if batch_size is None else batch_size)
    structure, _, _ = _parts(data._structure)
    first = _count(structure)
    if _count(data._structure) > first:
        data = data.map(lambda *parts: (parts[0],))
    _remember_inputs(self, structure)
    kinds = []

    def call(tensors):
        found = self(*_arguments(structure, tensors), training=False)
        kinds[:] = [nest.map_structure(lambda _: None, found)]
        return nest.flatten(found)
    if steps is not None:
        data = data.take(steps)
    once = _native._function(call, "predict", [], 64, True, False, False, 0, [])
    parts = [once(fields) for fields in data._stages.begin()]
    if not parts:
        raise _native.DataLossError("predict: the data set is empty")
    joined = [_native.ops.concat(list(each), 0) for each in zip(*parts)]
    return joined[0] if kinds[0] is None else nest.pack_sequence_as(kinds[0], joined)


def save_weights(self, file):
    """Writes all variables by name: as an archive of NumPy if the name ends in .npz, as Keras does if it ends in
    .weights.h5, else as safetensors. The file appears whole or not at all."""
    _native._save_weights(self, os.fspath(file))


def load_weights(self, file, strict=True):
    """Reads the variables of a file of save_weights, or of a .keras, into the model, which is built. Names and shapes must match, unless
    strict is False; gives the report."""
    return _native._load_weights(self, os.fspath(file), strict)


def save(self, file):
    """Writes a Sequential with its layers, options and weights as Keras does; the name ends in .keras."""
    _native._save_model(self, os.fspath(file))


def load_model(file, inference_only=False):
    """The Sequential of a .keras file. inference_only accepts unknown parts that matter in training alone."""
    return _native._load_model(os.fspath(file), inference_only)


def load_functional(file, inference_only=False):
    """The graph of layers of a .keras file: `model([words, numbers])` gives the outputs in the order of output_names."""
    return _native._load_functional(os.fspath(file), inference_only)


# ---- layers of a Sequential

_add = nn.Sequential.add


def add(self, layer):
    """Adds a layer at the end."""
    _add(self, layer)
    layers, options = self._made_with
    before = list(layers[0]) if layers else list(options.get("layers", ()))
    self._made_with = ([*before, layer],), {}


# ---- optimizers

_apply, _build = nn.Optimizer.apply_gradients, nn.Optimizer.build
_trained = weakref.WeakKeyDictionary()  # the Variables for which an optimizer has state, in its order


def trained_by(optimizer):
    """The Variables for which the optimizer has state, in its order."""
    return list(_trained.get(optimizer, {}).values())


def _note_trained(optimizer, variables):
    known = _trained.setdefault(optimizer, {})
    for each in variables:
        known.setdefault(each.ref(), each)


def build(self, variables):
    """Makes state for these Variables, those that have none."""
    variables = list(variables)
    _build(self, variables)
    _note_trained(self, variables)


def apply_gradients(self, gradients, variables=None):
    """Updates Variables: one step. Takes Gradients, as tape.gradient(loss, variables) gives them, or pairs of a gradient and
    its Variable, or a list of gradients beside one of Variables. A gradient of None leaves its Variable as it is."""
    if variables is not None:
        gradients = zip(gradients, variables)
    gradients = getattr(gradients, "whole", None) or gradients
    if not isinstance(gradients, (_native._Gradients, _native.ClippedGradients)):
        pairs = list(gradients)
        gradients = _native._gradients_of_pairs(pairs)
        variables = [variable for gradient, variable in pairs if gradient is not None]
    else:
        variables = getattr(gradients, "variables", ())
    _apply(self, gradients)
    _note_trained(self, variables)


def extend():
    """Adds what stands here to gradus.nn."""
    nn.Model, nn.History = Model, History
    nn.Callback.model, nn.Callback.optimizer, nn.Callback.stop_training = None, None, False
    nn.Module.compile, nn.Module.fit, nn.Module.evaluate, nn.Module.predict = compile_, fit, evaluate, predict
    nn.Module.save_weights, nn.Module.load_weights = save_weights, load_weights
    nn.Module.save, nn.load_model, nn.load_functional, nn.Sequential.add = save, load_model, load_functional, add
    nn.Module.__reduce__ = reduce_layer
    compile_.__name__ = "compile"
    nn.Optimizer.apply_gradients, nn.Optimizer.build = apply_gradients, build
