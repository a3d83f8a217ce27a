"""What layers of this backend have beyond Keras's."""


class GradusLayer:
    """Nothing: Variables and functions need no help from layers."""
