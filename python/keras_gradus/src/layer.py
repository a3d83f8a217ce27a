"""What layers of this backend have beyond Keras's."""
import functools
import inspect

from keras.src.version import __version__

from keras_gradus.src.replicas import summed_over_shards

SUMS_ACTIVITIES = tuple(map(int, __version__.split(".")[:2])) < (3, 14)  # later ones take the mean over the rows


def _activity_regularizer(layer):
    return summed_over_shards(vars(layer).get("_own_activity_regularizer"))


def _set_activity_regularizer(layer, value):
    vars(layer)["_own_activity_regularizer"] = value


class GradusLayer:
    """Variables and functions need no help from layers. Keras's BatchNormalization takes synchronized=True by TensorFlow alone:
    here it does, too. The activity regularizers of earlier Keras add up over the rows of a batch, and so over its shards."""
    if SUMS_ACTIVITIES:
        activity_regularizer = property(_activity_regularizer, _set_activity_regularizer)

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if cls.__name__ == "BatchNormalization" and cls.__module__ == "keras.src.layers.normalization.batch_normalization":
            cls.__init__ = _taking_synchronized(cls.__init__)


def _taking_synchronized(init):
    """A constructor that sets `synchronized` where Keras's refuses it for this backend."""
    @functools.wraps(init)
    def __init__(self, *args, synchronized=False, **options):
        init(self, *args, **options)
        self.synchronized = bool(synchronized)
    __init__.__signature__ = inspect.signature(init)
    return __init__
