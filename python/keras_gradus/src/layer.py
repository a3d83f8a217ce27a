"""What layers of this backend have beyond Keras's."""
import functools
import inspect


class GradusLayer:
    """Variables and functions need no help from layers. Keras's BatchNormalization takes synchronized=True by TensorFlow alone:
    here it does, too."""

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
