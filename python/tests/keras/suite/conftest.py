"""What Keras's tests take from the conftest.py of its repository, which its wheel does not bring, and the list of those
that are left out."""
import os
import pathlib
import re

import keras_gradus  # noqa: F401
import pytest
from keras.src import backend

EXCLUDED = pathlib.Path(__file__).with_name("excluded_tests.txt")


def skip_if_backend(given_backend, reason):
    """Skips a test on one backend."""
    return pytest.mark.skipif(backend.backend() == given_backend, reason=reason)


def pytest_configure(config):
    config.addinivalue_line("markers", "requires_trainable_backend: needs gradients, which this backend has")


def excluded(file):
    """The tests of this file, as Class::test, that are left out; * stands for any text."""
    lines = EXCLUDED.read_text().splitlines()
    return {line.partition("::")[2] for line in lines if line.startswith(f"{file}::")}


def matches(name, item):
    return re.fullmatch(".*".join(map(re.escape, name.split("*"))), item.nodeid.partition("::")[2]) is not None


def pytest_collection_modifyitems(config, items):
    names = excluded(os.environ.get("GRADUS_KERAS_TEST", ""))
    without = [item for item in items if any(matches(name, item) for name in names)]
    stale = {name for name in names if not any(matches(name, item) for item in without)}
    if stale:
        raise pytest.UsageError(f"{EXCLUDED.name} lists tests that are not there: {sorted(stale)}")
    config.hook.pytest_deselected(items=without)
    items[:] = [item for item in items if item not in without]
