"""The logger of programs of TensorFlow."""


def get_logger():
    """Python's logger "tensorflow"."""
    import logging  # here, to keep the import of the package short
    return logging.getLogger("tensorflow")
