"""The logger of programs of TensorFlow."""
import logging


def get_logger():
    """The logger of this name of Python's."""
    return logging.getLogger("tensorflow")
