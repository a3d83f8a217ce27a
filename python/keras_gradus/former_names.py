"""Methods of Keras 2's optimizers that programs of TensorFlow call, for those of Keras 3, whose apply() divides by the scale
that scale_loss() multiplies by."""


def get_scaled_loss(self, loss):
    """The loss times the optimizer's scale: apply_gradients divides by it."""
    return self.scale_loss(loss)


def get_unscaled_gradients(self, gradients):
    """The gradients as they are, since apply_gradients divides them by the scale and leaves out a step that overflows."""
    return list(gradients)


def install():
    """Adds the methods to the optimizers of the Keras that is imported."""
    from keras.src.optimizers.base_optimizer import BaseOptimizer
    for method in (get_scaled_loss, get_unscaled_gradients):
        if not hasattr(BaseOptimizer, method.__name__):
            setattr(BaseOptimizer, method.__name__, method)
