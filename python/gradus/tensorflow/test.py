"""tf.test: test cases that compare tensors."""
import os
import tempfile
import unittest

import numpy as np

from .. import devices, nest
from .texts import StringTensor, is_string_like


def _array(value):
    if isinstance(value, (dict, list, tuple)) and any(hasattr(leaf, "numpy") for leaf in nest.flatten(value)):
        value = [np.asarray(leaf) for leaf in nest.flatten(value)] if isinstance(value, dict) else \
            [_array(each) for each in value]
    return StringTensor(value)._array if is_string_like(value) else np.asarray(value)


class TestCase(unittest.TestCase):
    """unittest's TestCase, with comparisons of tensors and arrays."""

    def assertAllEqual(self, a, b, msg=None):
        """Fails unless shapes and elements are the same."""
        np.testing.assert_array_equal(_array(a), _array(b), err_msg=msg or "")

    def assertAllClose(self, a, b, rtol=1e-6, atol=1e-6, msg=None):
        """Fails unless shapes are the same and elements differ by at most atol + rtol * |b|; nests leaf by leaf."""
        if nest.is_nested(a) and nest.is_nested(b):
            left, right = nest.flatten(a), nest.flatten(b)
            self.assertEqual(len(left), len(right), msg)
            for x, y in zip(left, right):
                self.assertAllClose(x, y, rtol, atol, msg)
        else:
            np.testing.assert_allclose(_array(a), _array(b), rtol=rtol, atol=atol, err_msg=msg or "", strict=False)

    def assertNotAllClose(self, a, b, rtol=1e-6, atol=1e-6, msg=None):
        """Fails if assertAllClose would not."""
        with self.assertRaises(AssertionError, msg=msg):
            self.assertAllClose(a, b, rtol, atol)

    def assertNotAllEqual(self, a, b, msg=None):
        """Fails if shapes and all elements are the same."""
        with self.assertRaises(AssertionError, msg=msg):
            self.assertAllEqual(a, b)

    def assertAllCloseAccordingToType(self, a, b, rtol=1e-6, atol=1e-6, half_rtol=1e-3, half_atol=1e-3, **kwargs):
        """assertAllClose, with wider bounds for float16 and bfloat16."""
        narrow = any(_array(each).dtype.itemsize == 2 for each in (a, b))
        self.assertAllClose(a, b, half_rtol if narrow else rtol, half_atol if narrow else atol)

    def assertNear(self, f1, f2, err, msg=None):
        """Fails unless two numbers differ by at most err."""
        self.assertLessEqual(abs(float(f1) - float(f2)), err, msg)

    def assertShapeEqual(self, input_a, input_b, msg=None):
        """Fails unless the shapes are the same."""
        self.assertEqual(tuple(np.shape(input_a)), tuple(np.shape(input_b)), msg)

    def assertAllGreater(self, a, comparison_target):
        """Fails unless all elements are greater."""
        self.assertTrue((_array(a) > comparison_target).all())

    def assertAllLess(self, a, comparison_target):
        """Fails unless all elements are less."""
        self.assertTrue((_array(a) < comparison_target).all())

    def assertAllInRange(self, target, lower_bound, upper_bound, open_lower_bound=False, open_upper_bound=False):
        """Fails unless all elements are within the bounds."""
        x = _array(target)
        self.assertTrue(((x > lower_bound) if open_lower_bound else (x >= lower_bound)).all())
        self.assertTrue(((x < upper_bound) if open_upper_bound else (x <= upper_bound)).all())

    def evaluate(self, tensors):
        """The arrays of tensors, in their nest."""
        return nest.map_structure(lambda x: x.numpy() if hasattr(x, "numpy") else x, tensors)

    def get_temp_dir(self):
        """A folder of this test, removed after it."""
        if not hasattr(self, "_folder"):
            self._folder = tempfile.TemporaryDirectory()
            self.addCleanup(self._folder.cleanup)
        return self._folder.name


def main(argv=None):
    """Runs the tests of the program."""
    unittest.main(argv=argv)


def get_temp_dir():
    """A folder for the files of tests."""
    return os.environ.get("TEST_TMPDIR") or tempfile.mkdtemp()


def is_gpu_available(cuda_only=False, min_cuda_compute_capability=None):
    """True if there is a GPU."""
    return bool(devices("gpu"))


def gpu_device_name():
    """The name of a GPU, or an empty string."""
    return "/device:GPU:0" if devices("gpu") else ""


def is_built_with_cuda():
    """True if there is a GPU, whose plugin is loaded when the program starts."""
    return bool(devices("gpu"))


is_built_with_gpu_support = is_built_with_cuda


def is_built_with_rocm():
    """False."""
    return False
