"""Losses, metrics and optimizers by name, as compile() takes them."""
import re

from . import _native
from ._names import nearest

nn, ops = _native.nn, _native.ops


def in_words(name):
    """SparseCategoricalCrossentropy as sparse_categorical_crossentropy."""
    name = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    return re.sub(r"([A-Z])([A-Z][a-z])", r"\1_\2", name).lower()


def _named(base):
    """The classes of a kind by their names in lower case, with and without underscores."""
    found = {}
    for name, made in vars(nn).items():
        if isinstance(made, type) and issubclass(made, base) and made is not base:
            found[in_words(name)] = found[name.lower()] = made
    return found


_SHORT = {"mse": "mean_squared_error", "mae": "mean_absolute_error", "mape": "mean_absolute_percentage_error",
          "msle": "mean_squared_logarithmic_error", "kld": "kl_divergence", "bce": "binary_crossentropy",
          "logcosh": "log_cosh"}
_OF_PROBABILITIES = {"from_logits": False}


def _with_defaults(make, what):
    """make() with the library's defaults. A class that needs a choice between logits and probabilities gets the latter, as
    Keras does for a name. ValueError if it needs other arguments."""
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
    near = nearest(given.lower(), known)
    return ValueError(f"compile: there is no {kind} {given!r}" + (f"; did you mean {near!r}?" if near else ""))


def _checked(kind, base, given):
    if not isinstance(given, base):
        raise TypeError(f"compile: {kind}: expected a gradus.nn.{base.__name__} or the name of one, got {type(given).__name__}")
    return given


def made_of(kind, base, given):
    """An object of the library: `given`, or one made for its name, that of a class in any case. ValueError for an unknown
    name, TypeError for an object that is no `base`."""
    if not isinstance(given, str):
        return _checked(kind, base, given)
    known = _named(base)
    name = _SHORT.get(given.lower(), given.lower())
    if name in known:
        return _with_defaults(known[name], f"the {kind} {given!r}")
    raise _unknown(kind, given, [*known, *(_FUNCTIONS if kind == "loss" else ())])


def _is_loss(given):
    return given is None or callable(given) or isinstance(given, (dict, list, tuple, nn.LossFunction))


def loss_of(given):
    """The loss for an object, a function, or the name of one. A metric that is the mean of a loss stands for that loss."""
    name = given if isinstance(given, str) else in_words(type(given).__name__) if isinstance(given, nn.Metric) else None
    if name is None and not _is_loss(given):
        raise TypeError("compile: loss: expected an object of gradus.nn, such as nn.MeanSquaredError(), its name, or a function of "
                        f"(y, prediction), got {type(given).__name__}")
    if name is None:
        return given
    f = _function(_SHORT.get(name.lower(), name.lower())) or _function(in_words(name))
    if f is not None and (not isinstance(given, str) or _SHORT.get(name.lower(), name.lower()) not in _named(nn.LossFunction)):
        return nn.PerExampleLoss(f)
    if not isinstance(given, str):
        raise TypeError(f"compile: the metric {type(given).__name__} is no loss")
    return made_of("loss", nn.LossFunction, given)


def _agrees(threshold):
    """The rule of BinaryAccuracy."""
    def rule(y, prediction):
        is_one = y > 0.5 if "float" in y.dtype.name else ops.not_equal(ops.cast(y, "int64"), 0)
        right = ops.equal(is_one, prediction > threshold)
        return right if len(y.shape) <= 1 else ops.reduce_mean(ops.cast(right, prediction.dtype), axis=-1)
    return rule


def _accuracy(loss, named, name):
    """The accuracy metric for a loss, which was given as `named`, under this name in logs. ValueError if the loss does not
    determine it."""
    kind = type(loss).__name__
    if kind == "BinaryCrossentropy":
        from_logits = not isinstance(named, str) and loss._made_with[1].get("from_logits", True)
        return nn.Metric(name, _agrees(0.0 if from_logits else 0.5))
    if kind == "SparseCategoricalCrossentropy":
        return nn.Metric(name, lambda y, prediction: ops.equal(ops.cast(y, "int64"), ops.cast(ops.argmax(prediction), "int64")))
    if kind == "CategoricalCrossentropy":
        return nn.Metric(name, lambda y, prediction: ops.equal(ops.argmax(y), ops.argmax(prediction)))
    raise ValueError(f"compile: the accuracy of {kind} is not determined: give a metric, such as "
                     "nn.BinaryAccuracy(from_logits=True)")


def metric_of(given, loss, named):
    """The metric for an object, a function or a name, which logs then use. "accuracy" is the accuracy of the loss, which was
    given as `named`."""
    if callable(given) and not isinstance(given, nn.Metric):
        return nn.Metric(getattr(given, "__name__", "metric"), given)
    if not isinstance(given, str):
        return _checked("metric", nn.Metric, given)
    name = _SHORT.get(given.lower(), given.lower())
    if name in ("accuracy", "acc"):
        return _accuracy(loss, named, given)
    known = _named(nn.Metric)
    f = _function(name) or _function(in_words(given))
    if name in known and (f is None or given.lower() not in _SHORT):
        return _with_defaults(known[name], f"the metric {given!r}")
    if f is None:
        raise _unknown("metric", given, [*known, *_FUNCTIONS])
    if name.replace("_", "") == "cosinesimilarity":  # as a metric it grows with the likeness, as a loss it falls
        return nn.Metric("cosine_similarity", lambda y, prediction: -f(y, prediction))
    return nn.Metric(given if given.lower() in _SHORT else in_words(given), f)


# ---- metrics by Keras's names

def _call(self, y, prediction, sample_weight=None):
    """The Loss of the function of this name: the mean over examples, with their number or the sum of sample_weight as weight.
    TypeError for a metric that is no mean of a loss: use update(y, prediction) and result()."""
    f = _function(in_words(type(self).__name__))
    if f is None:
        raise TypeError(f"{type(self).__name__} is a metric, which is no loss: update(y, prediction) adds a batch, result() gives "
                        "the number")
    loss = nn.PerExampleLoss(f)
    return loss(y, prediction) if sample_weight is None else loss(y, prediction, sample_weight)


def _update_state(self, y_true, y_pred, sample_weight=None):
    """Adds a batch, as update() does."""
    if sample_weight is None:
        self.update(y_true, y_pred)
    else:
        self.update(y_true, y_pred, sample_weight)


def _reset_state(self):
    """Resets the totals, as reset() does."""
    self.reset()


def extend():
    """Adds these to gradus.nn.Metric."""
    nn.Metric.__call__, nn.Metric.update_state, nn.Metric.reset_state = _call, _update_state, _reset_state
