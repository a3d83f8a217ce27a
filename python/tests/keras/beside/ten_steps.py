"""For programs of Keras that run by several backends: data, first weights, and the losses of ten steps."""
import keras
import numpy as np

STEPS = 10
PROGRAMS = {}


def program(function):
    """A function that returns the losses of ten steps, or (losses, how far backends may be apart)."""
    PROGRAMS[function.__name__] = function
    return function


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def whole_numbers(below, *shape, seed=0):
    return np.random.default_rng(seed).integers(0, below, shape).astype(np.int32)


def with_first_weights(model, seed=1):
    """The model with weights that do not depend on the backend. Biases and scales are moved a little: where a unit is zero
    exactly, backends take other slopes of relu6."""
    rng = np.random.default_rng(seed)
    for weight in model.trainable_variables:
        shape = tuple(weight.shape)
        if len(shape) < 2:
            weight.assign(keras.ops.convert_to_numpy(weight) + 0.1 * rng.standard_normal(shape).astype(np.float32))
        else:
            weight.assign((rng.standard_normal(shape) / np.prod(shape[:-1]) ** 0.5).astype(np.float32))
    return model


class Losses(keras.callbacks.Callback):
    """The loss of each step: fit tells the mean since the epoch began, but for a train_step of the program's own."""

    def __init__(self, are_means=True):
        super().__init__()
        self.are_means, self.all, self.sum = are_means, [], 0.0

    def on_epoch_begin(self, epoch, logs=None):
        self.sum = 0.0

    def on_train_batch_end(self, batch, logs=None):
        if not self.are_means:
            return self.all.append(float(logs["loss"]))
        total = float(logs["loss"]) * (batch + 1)
        self.all.append(total - self.sum)
        self.sum = total


def fitted(model, x, y, batch_size, callbacks=(), **options):
    """The losses of fit over ten batches, in two epochs where `x` has five."""
    losses = Losses()
    first = x[0] if isinstance(x, (list, tuple)) else next(iter(x.values())) if isinstance(x, dict) else x
    epochs = STEPS * batch_size // len(first)
    model.fit(x, y, batch_size=batch_size, epochs=epochs, shuffle=False, verbose=0, callbacks=[losses, *callbacks], **options)
    return losses.all
