"""Errors: classes by the names of tf.errors that are Python's own, too; names that are not there; dtypes, devices."""
import pickle
import subprocess
import sys
import unittest
import warnings

import gradus
from gradus import errors


class Errors(unittest.TestCase):
    def test_are_those_of_python_too(self):
        for name, also in [("InvalidArgumentError", ValueError), ("OutOfRangeError", IndexError), ("DataLossError", ValueError),
                           ("ResourceExhaustedError", MemoryError), ("UnavailableError", OSError),
                           ("UnimplementedError", NotImplementedError), ("DivergedError", ArithmeticError)]:
            error = getattr(errors, name)
            self.assertTrue(issubclass(error, errors.OpError) and issubclass(error, also), name)
            self.assertEqual(error.__module__, "gradus.errors")
            made = pickle.loads(pickle.dumps(error("text")))
            self.assertEqual((type(made), str(made)), (error, "text"))
        self.assertFalse(issubclass(errors.InternalError, errors.OpError))

    def test_have_the_whole_text(self):
        with self.assertRaises(errors.InvalidArgumentError) as found:
            gradus.constant([[1.0, 2.0]]) @ gradus.constant([[1.0, 2.0]])
        for word in ("matmul", "f32[1,2]"):
            self.assertIn(word, str(found.exception))
        with self.assertRaises(IndexError):
            gradus.constant([1.0])[3]
        with self.assertRaises(OSError):
            gradus.set_default_device("gpu:50")

    def test_of_names(self):
        with self.assertRaisesRegex(AttributeError, "did you mean 'constant'"):
            gradus.constnt
        with self.assertRaises(ImportError):
            from gradus import no_such_name  # noqa: F401

    def test_dtypes_have_many_names(self):
        import numpy as np
        for name in ("float32", "f32", np.float32, np.dtype("float32"), float, gradus.float32):
            self.assertEqual(gradus.DType(name), gradus.float32)
        self.assertEqual(gradus.float32, np.float32)
        self.assertNotEqual(gradus.float32, "int8")
        self.assertEqual(np.zeros(1, gradus.bfloat16.numpy).dtype, gradus.bfloat16)
        self.assertEqual({gradus.int32: 1}[gradus.DType("int32")], 1)
        with self.assertRaisesRegex(TypeError, "no dtype"):
            gradus.DType("complex64")

    def test_devices(self):
        self.assertEqual(str(gradus.default_device()), "cpu:0")
        self.assertEqual(gradus.devices("gpu"), [])
        with gradus.device("cpu:1"):
            x = gradus.constant([1.0]) + 1
            self.assertEqual(x.device, "cpu:1")
        self.assertEqual(pickle.loads(pickle.dumps(x.device)), x.device)
        self.assertEqual((gradus.constant([1.0]) + 1).device, gradus.Device("cpu:0"))
        self.assertEqual(x.to("cpu:0").tolist(), [2])
        with self.assertRaises(ValueError):
            gradus.Device("nowhere")

    def test_a_sub_interpreter_is_refused(self):
        program = """
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    import _interpreters as interpreters
import sys
made = interpreters.create()
code = 'import sys; sys.path = %r\\ntry:\\n import gradus\\nexcept ImportError: pass\\nelse: raise SystemError' % (sys.path,)
interpreters.run_string(made, code)
"""
        self.assertEqual(subprocess.run([sys.executable, "-c", program], timeout=60).returncode, 0)


if __name__ == "__main__":
    unittest.main()
