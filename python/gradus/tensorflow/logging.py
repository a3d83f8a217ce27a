"""The logger of programs of TensorFlow."""


def get_logger():
    """The logger of this name of Python's."""
    import logging  # when it is asked for, since the import of the package is short
    return logging.getLogger("tensorflow")
