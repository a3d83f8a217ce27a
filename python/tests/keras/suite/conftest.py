"""What Keras's tests take from the conftest.py of its repository, which its wheel does not bring."""
import keras_gradus  # noqa: F401
import pytest
from keras.src import backend


def skip_if_backend(given_backend, reason):
    """Skips a test on one backend."""
    return pytest.mark.skipif(backend.backend() == given_backend, reason=reason)


def pytest_configure(config):
    config.addinivalue_line("markers", "requires_trainable_backend: needs gradients, which this backend has")
