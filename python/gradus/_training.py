"""compile, fit, evaluate and predict of gradus.nn: they describe a training to the engine."""
import os

import numpy as np

from . import _assigned, _native, _optimizers, _parts, nest
from ._callbacks import hooks_of
from ._logs import History, Logs
from ._models import _PLACE, Model, reduce_layer
from ._names import attribute_error, knows_keywords
from ._optimizers import note_trained, trained_by  # noqa: F401 - gradus.tensorflow takes trained_by from here
from ._sources import NOTHING, EndsWithData, ReadOnce, dataset_of, in_dtypes_of, is_read_once, parts_of, split, validation_of
from ._warnings import warn
from .datasets import Dataset

nn = _native.nn


# ---- plans

def _count(structure):
    return len(nest.flatten(structure))


def _arguments(structure, tensors):
    """The arguments of a model: the parts of a tuple are separate arguments."""
    nested = tensors[0] if not nest.is_nested(structure) else nest.pack_sequence_as(structure, tensors)
    return nested if isinstance(nested, tuple) else (nested,)


def _remember_inputs(model, structure):
    """Stores the nest of the inputs, for a model that is built before it is called."""
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
    """Losses or weights by the names of outputs: from a dict, from a list in their order, or one for all."""
    if isinstance(given, dict):
        return dict(given)
    if isinstance(given, (list, tuple)):
        if len(given) != len(names):
            raise ValueError(f"compile: {len(given)} losses or weights for the outputs {names}")
        return dict(zip(names, given))
    return {name: given for name in names}


def _steps_of(model, settings):
    """The steps that the model defines, by the names of the plan. Without a test_step, the compiled loss is the test, as in
    Keras."""
    found = {name: getattr(model, f"{name}_step") for name in ("train", "test") if hasattr(model, f"{name}_step")}
    if found and "test" not in found and settings.loss is not None:
        found["test"] = lambda data: {"loss": model.compute_loss(*_unpacked(model, data))}
    return found


def _unpacked(model, data):
    """x, y, the prediction and the weight of an element (x, y) or (x, y, sample_weight)."""
    x, y, *weight = data
    return x, y, model(*(x if isinstance(x, tuple) else (x,))), weight[0] if weight else None


def _require_test(model, settings, what):
    steps = _steps_of(model, settings)
    if steps and "test" not in steps:
        name = type(model).__name__
        raise ValueError(f"{what}: {name} has a train_step of its own, which does not tell how to evaluate: define {name}.test_step(self, "
                         "data), which returns a dict of numbers by name, such as {\"loss\": loss}, or give compile() a loss")


def _plan(model, structure, settings):
    """A training as the engine sees it: a model and its loss, for elements of this structure."""
    x, y, is_weighted = parts_of(structure)
    inputs = _count(x)
    plan = {"inputs": inputs, "fields": _count(structure), "is_weighted": is_weighted}
    _remember_inputs(model, x)

    def outputs_of(tensors):
        found = model(*_arguments(x, tensors))
        return nest.flatten(found) if nest.is_nested(found) else found
    plan["call"] = outputs_of
    for name, step in _steps_of(model, settings).items():
        plan[name] = lambda fields, step=step: step(
            fields[0] if structure is None else nest.pack_sequence_as(structure, fields))
    if "train" in plan or "test" in plan:
        return plan
    loss = settings.loss
    if y is NOTHING:
        raise ValueError("fit: an element of the data set is (x, y) or (x, y, sample_weight); this one is x alone")
    if loss is None:
        raise ValueError("fit: the model has no loss: model.compile(optimizer, loss)")
    if nest.is_nested(y) or isinstance(loss, (dict, list, tuple)):
        names = _output_names(y) or list(loss)
        losses = {name: _parts.loss_of(each) for name, each in _by_output(loss, names).items()}
        factors = settings.loss_weights
        plan |= {"outputs": names, "losses": losses, "loss_weights": _by_output(factors, names) if factors else {}}
    else:
        plan["loss"] = loss
    return plan


class _Settings:
    """The arguments of compile()."""

    def __init__(self, optimizer, loss, metrics, loss_weights, weighted_metrics, strategy):
        self.optimizer = _parts.made_of("optimizer", nn.Optimizer, optimizer)
        self.loss = _parts.loss_of(loss)
        self.metrics = [_parts.metric_of(each, self.loss, loss) for each in metrics or ()]
        self.weighted_metrics = [_parts.metric_of(each, self.loss, loss) for each in weighted_metrics or ()]
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


class _OfTraining:
    """An attribute that compile() sets; None before. An attribute of this name that the model itself sets has precedence. An
    optimizer that is set after compile() is used for training."""

    def __init__(self, name, doc):
        self._name, self.__doc__ = name, doc

    def __get__(self, model, owner=None):
        if model is None:
            return self
        own = model.__dict__
        return own[self._name] if self._name in own else getattr(own.get("_training"), self._name, None)

    def __set__(self, model, value):
        settings = model.__dict__.get("_training")
        if self._name == "optimizer" and isinstance(value, nn.Optimizer) and settings is not None:
            settings.optimizer = value
        elif not isinstance(model, Model):
            raise AttributeError(f"{type(model).__name__}: `{self._name}` is what compile() sets: compile the model again")
        if isinstance(model, Model):
            model.__dict__[self._name] = value

    def __delete__(self, model):
        if model.__dict__.pop(self._name, self) is self:
            raise AttributeError(f"{type(model).__name__} has no `{self._name}` of its own")


# ---- methods of models

def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None):
    """The compiled Loss of a prediction, plus the losses that layers add, for a model's train_step. `x` is not used.
    RuntimeError before compile(); ValueError without a loss, and for several outputs."""
    settings = _settings(self, "compute_loss")
    if settings.loss is None:
        raise ValueError("compute_loss: the model has no loss: model.compile(optimizer, loss)")
    if nest.is_nested(y) or isinstance(settings.loss, (dict, list, tuple)):
        raise ValueError("compute_loss: of one output; add up the losses of several ones in train_step")
    total = settings.loss(y, y_pred) if sample_weight is None else settings.loss(y, y_pred, sample_weight)
    if not isinstance(total, _native.Loss):
        total = _native.Loss.mean(total)
    for each in self.losses:
        total = total + each
    return total


def compile_(self, optimizer="rmsprop", loss=None, metrics=None, loss_weights=None, weighted_metrics=None, strategy=None):
    """Sets the training of the model. optimizer, loss and metrics are objects of gradus.nn, or their names ("adam",
    "mean_squared_error", "accuracy"). A loss may be a function of (y, prediction); a loss given by name takes predictions as
    probabilities. A model with several outputs has a dict or list of losses, and factors in loss_weights. weighted_metrics
    count class weights, too. Steps run on the devices of `strategy`. ValueError for an unknown name, TypeError for other
    objects."""
    self._training = _Settings(optimizer, loss, metrics, loss_weights, weighted_metrics, strategy)


def fit(self, x=None, y=None, batch_size=None, epochs=1, verbose=True, callbacks=None, validation_split=0.0,
        validation_data=None, shuffle=True, class_weight=None, sample_weight=None, initial_epoch=0, steps_per_epoch=None,
        validation_freq=1, micro_batch=0, checkpoints=None, fast_dev_run=0, unbatched=False):
    """Trains the model, and returns its History. RuntimeError before compile().

    Args:
        x: arrays, with y and sample_weight as further arguments; a Dataset of batches (x, y) or (x, y, sample_weight); or an
            iterator of such batches. x may be a tuple, whose parts are the model's arguments, or a dict.
        batch_size: rows of a batch for arrays; 32 by default. A Dataset has batches of its own.
        epochs: number of the last epoch plus 1; initial_epoch is the number of the first.
        steps_per_epoch: steps of an epoch; None: a pass over the data.
        shuffle: True puts the rows of arrays into a new order in each epoch.
        class_weight: a dict from classes to factors on the losses of their examples.
        validation_split: share of the examples, the last ones, for validation; they are not trained on.
        validation_freq: epochs from one validation to the next, or a list of epochs counted from 1.
        callbacks: nn.Callback objects: those of the library (nn.early_stopping(...)) and of subclasses.
        validation_data: (x, y), (x, y, sample_weight) or a Dataset.
        micro_batch: rows at a time, whose gradients add up to those of the batch; 0: the whole batch.
        checkpoints: a directory, from which an interrupted training resumes with the same bits; or a dict of directory,
            max_to_keep and every_steps.
        fast_dev_run: number of steps of a trial, which writes no files; 0: a whole training.
        unbatched: True uses elements as they are, although no batch() made them.
    """
    settings = _settings(self, "fit")
    if not isinstance(validation_split, (int, float, np.number)):
        raise TypeError(f"fit: argument `validation_split`: expected a number, got {type(validation_split).__name__}")
    batches = ends = None
    if is_read_once(x):
        if validation_split:
            raise ValueError("fit: validation_split is for arrays and data sets; an iterator is read once: give validation_data")
        per_epoch = steps_per_epoch or 0
        wanted = epochs * per_epoch or None
        batches = ReadOnce("fit", x, fast_dev_run or wanted)
        if (wanted or epochs - initial_epoch > 1) and not fast_dev_run:
            ends = EndsWithData(batches, initial_epoch * per_epoch, wanted)
        x = batches.dataset()
    elif validation_split and validation_data is None and not isinstance(x, Dataset):
        (x, y, sample_weight), validation_data = split(x, y, sample_weight, validation_split)
        validation_split = 0.0
    data = in_dtypes_of(self, dataset_of("fit", x, y, sample_weight, batch_size, shuffle))
    plan = _plan(self, data._structure, settings)
    self.stop_training = False
    options = settings.options() | {
        "epochs": epochs, "initial_epoch": initial_epoch, "steps_per_epoch": steps_per_epoch or 0,
        "validation_split": validation_split, "validation_freq": validation_freq, "micro_batch": micro_batch,
        "verbose": bool(verbose), "fast_dev_run": fast_dev_run, "sample_weight": plan["is_weighted"],
        "unbatched": unbatched or batches is not None,
        "callbacks": [hooks_of(each, self, settings.optimizer) for each in callbacks or ()] + ([ends.hooks()] if ends else [])}
    if class_weight is not None:
        options["class_weight"] = plan["class_weight"] = dict(class_weight)
    if validation_data is not None:
        _require_test(self, settings, "fit")
        options["validation"] = in_dtypes_of(self, validation_of(validation_data, batch_size))._stages
    if checkpoints is not None:
        options["checkpoints"] = checkpoints if isinstance(checkpoints, dict) else {"directory": checkpoints}
    _native._show_progress()
    try:
        numbers = _native._fit(self, settings.optimizer, plan, data._stages, options)
    except _native.OutOfRangeError as error:
        if batches is None or "no elements" not in str(error):
            raise
        raise _native.DivergedError("training diverged: the loss of a batch is not finite. The batch is not known any more, since the "
                                    "iterator is read once: give a Dataset, which says where it began") from error
    finally:
        if self.built:
            note_trained(settings.optimizer, self.trainable_variables)
    if ends and ends.has_ended:
        warn(ends.warning())
    return History(numbers, initial_epoch)


def evaluate(self, x=None, y=None, batch_size=None, sample_weight=None, unbatched=False, verbose="auto", steps=None,
             callbacks=None):
    """The loss and the metrics of the data, a dict by name, in inference mode. Data as for fit; at most `steps` batches. It
    prints nothing and calls no callbacks: `verbose` is accepted for programs of Keras, callbacks are a ValueError.
    RuntimeError before compile(), DataLossError for empty data."""
    settings = _settings(self, "evaluate")
    _require_test(self, settings, "evaluate")
    if callbacks:
        raise ValueError("evaluate: there are no callbacks here")
    data = in_dtypes_of(self, dataset_of("evaluate", x, y, sample_weight, batch_size, False))
    if steps is not None:
        data = data.take(steps)
    plan = _plan(self, data._structure, settings)
    options = settings.options() | {"unbatched": unbatched or is_read_once(x)}
    return Logs(_native._evaluate(self, plan, data._stages, options))


def predict(self, x, batch_size=None, verbose="auto", steps=None, callbacks=None, unbatched=False):
    """The model's results for all rows of arrays, of a Dataset's elements or of an iterator's batches, x or (x, ...), in
    inference mode: an array of NumPy, or a nest of them. batch_size is for arrays, 256 by default; at most `steps` batches. It
    prints nothing and calls no callbacks: `verbose` is accepted for programs of Keras, callbacks are a ValueError.
    DataLossError for empty data."""
    if callbacks:
        raise ValueError("predict: there are no callbacks here: loop over the batches, and call the model")
    is_data = isinstance(x, Dataset) or is_read_once(x)
    data = dataset_of("predict", x, None, None, 256 if batch_size is None else batch_size, False) if is_data else \
        Dataset.from_tensor_slices((x,)).batch(256 if batch_size is None else batch_size)
    structure, _, _ = parts_of(data._structure)
    first = _count(structure)
    if _count(data._structure) > first:
        data = data.map(lambda *parts: (parts[0],))
    data = in_dtypes_of(self, data)
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
    joined = [np.array(_native.ops.concat(list(each), 0)) for each in zip(*parts)]  # a copy, which may be written
    return joined[0] if kinds[0] is None else nest.pack_sequence_as(kinds[0], joined)


def save_weights(self, file):
    """Writes all variables by name: as an archive of NumPy if `file` ends in .npz, in Keras's format if it ends in
    .weights.h5, else as safetensors. The file appears whole or not at all."""
    _native._save_weights(self, os.fspath(file))


def load_weights(self, file, strict=True):
    """Reads the variables of a file of save_weights, or of a .keras file, into the built model. Names and shapes must match,
    unless strict is False. Returns the report."""
    return _native._load_weights(self, os.fspath(file), strict)


def save(self, file):
    """Writes a built Sequential with its layers, options and weights in Keras's format; `file` ends in .keras.
    InvalidArgumentError lists layers and options that Keras does not have."""
    _native._save_model(self, os.fspath(file))


def load_model(file, inference_only=False):
    """The Sequential of a .keras file. inference_only accepts unknown parts that matter only in training. DataLossError lists
    layers and options that this library does not have."""
    return _native._load_model(os.fspath(file), inference_only)


def load_functional(file, inference_only=False):
    """The graph of layers of a .keras file: `model([words, numbers])` gives the outputs in the order of output_names. Errors
    as load_model()."""
    return _native._load_functional(os.fspath(file), inference_only)


# ---- layers of a Sequential

_add, _make_sequential = nn.Sequential.add, nn.Sequential.__init__


def _as_layer(layer, place=""):
    """A layer as it is, a function as a Lambda layer without Variables; else TypeError."""
    if isinstance(layer, nn.Module):
        return layer
    if isinstance(layer, type) or not callable(layer):
        is_class = isinstance(layer, type) and issubclass(layer, nn.Module)
        raise TypeError(f"Sequential: {place}expected a layer or a function of a tensor, got " + (
            f"the class {layer.__name__}: make one, {layer.__name__}(...)" if is_class else f"{type(layer).__name__}"))
    return nn.Lambda(layer)


def _init_sequential(self, *arguments, **options):
    if arguments and isinstance(arguments[0], (list, tuple)):
        arguments = ([_as_layer(each, f"layer {i}: ") for i, each in enumerate(arguments[0])], *arguments[1:])
    elif isinstance(options.get("layers"), (list, tuple)):
        options["layers"] = [_as_layer(each, f"layer {i}: ") for i, each in enumerate(options["layers"])]
    _make_sequential(self, *arguments, **options)


def add(self, layer):
    """Adds a layer, or a function of a tensor, at the end."""
    layer = _as_layer(layer)
    _add(self, layer)
    layers, options = self._made_with
    before = list(layers[0]) if layers else list(options.get("layers", ()))
    self._made_with = ([*before, layer],), {}


# ---- names that gradus.nn, gradus.ops and gradus.random do not have

_IN_PLACE_OF = {"ModelCheckpoint": "fit(checkpoints=folder)", "TensorBoard": "gradus.tensorflow.summary",
                "Layer": "nn.Model, whose layers are attributes", "Input": "the first call, which tells the shapes"}


def _no_attribute(module):
    def getattr_(name):
        error = attribute_error(module.__name__, name, vars(module))
        words = _parts.in_words(name)
        if module is nn and (words in vars(nn) or name in _IN_PLACE_OF):
            hint = f"; there is {_IN_PLACE_OF[name]}" if name in _IN_PLACE_OF else f"; did you mean {words!r}?"
            return AttributeError(f"module {module.__name__!r} has no attribute {name!r}{hint}", name=name, obj=None)
        return error

    def raises(name):
        raise getattr_(name)
    return raises


def extend():
    """Adds the classes and functions of this file, and of those for optimizers and metrics, to gradus.nn."""
    nn.Model, nn.History = Model, History
    nn.Callback.model, nn.Callback.optimizer, nn.Callback.stop_training = None, None, False
    compile_.__name__ = compile_.__qualname__ = "compile"
    for f in (compile_, fit, evaluate, predict, compute_loss, save_weights, load_weights, save):
        setattr(nn.Module, f.__name__, knows_keywords(f))
    nn.load_model, nn.load_functional = knows_keywords(load_model), knows_keywords(load_functional)
    nn.Sequential.add, nn.Sequential.__init__ = add, _init_sequential
    nn.Module.__reduce__ = reduce_layer
    for name, doc in (("optimizer", "The optimizer of compile()."), ("loss", "The loss of compile()."),
                      ("metrics", "The metrics of compile().")):
        setattr(nn.Module, name, _OfTraining(name, doc))
    for module in (nn, _native.ops, _native.random):
        module.__getattr__ = _no_attribute(module)
    _optimizers.extend()
    _parts.extend()
    _assigned.extend()
