"""Arrays in and out: copies in, no copies out, and errors for what is no tensor."""
import array
import copy
import pickle
import sys
import unittest

import ml_dtypes
import numpy as np

import gradus

DTYPES = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16, np.int64, np.int32, np.int16, np.int8, np.uint8, np.uint16,
          np.uint32, np.uint64, np.bool_]


def readable(count):
    """Memory of floats that can be read in place: it begins a page, so that there is room behind it."""
    memory = np.zeros(3 * 4096, np.uint8)
    begin = -memory.ctypes.data % 4096
    return memory[begin:begin + 4 * count].view(np.float32)


def of_dtype(dtype):
    return np.array([[0, 1, 2], [3, 4, 5]]).astype(dtype)


class In(unittest.TestCase):
    def test_every_dtype_round_trips(self):
        for dtype in DTYPES:
            with self.subTest(dtype=np.dtype(dtype).name):
                given = of_dtype(dtype)
                x = gradus.constant(given)
                self.assertEqual(x.dtype, given.dtype)
                self.assertEqual(x.numpy().dtype, given.dtype)
                np.testing.assert_array_equal(x.numpy(), given)

    def test_every_layout_is_read(self):
        given = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
        read_only = given.copy()
        read_only.flags.writeable = False
        layouts = [given.T, given[::-1], given[:, ::2], np.asfortranarray(given), read_only, given[:, :0], given.astype(">f4"),
                   np.broadcast_to(given[0], (5, 3, 4)), np.array(3.5, dtype=">f8"), np.float32(2.5), np.int16(-3)]
        for layout in layouts:
            x = gradus.constant(layout)
            self.assertEqual(x.shape, np.shape(layout))
            np.testing.assert_array_equal(x.numpy(), layout)

    def test_arrays_are_copied(self):
        given = np.ones(3, np.float32)
        x = gradus.constant(given)
        given[:] = 7
        self.assertEqual(x.tolist(), [1, 1, 1])

    def test_numbers_and_lists(self):
        for value, dtype in [(1.5, "float32"), (3, "int32"), (1 << 40, "int64"), (1 << 63, "uint64"), (True, "bool"),
                             ([1, 2], "int32"), ([1, 2.5], "float32"), ([True, False], "bool"), ([1 << 40], "int64"), ([], "float32"),
                             ([[1], [2]], "int32"), (range(3), "int32"), ([np.float64(1)], "float64"), ([np.zeros(2)], "float64")]:
            with self.subTest(value=value):
                self.assertEqual(gradus.constant(value).dtype, dtype)
        self.assertEqual(gradus.constant([1, 2], gradus.float64).dtype, gradus.float64)
        self.assertEqual(gradus.constant(0, shape=(2, 3)).tolist(), [[0, 0, 0]] * 2)

    def test_lists_of_tensors_are_stacked(self):
        x = gradus.constant([1.0, 2.0])
        np.testing.assert_array_equal(gradus.constant([x, [3, 4], gradus.Variable([5.0, 6.0])]).numpy(), [[1, 2], [3, 4], [5, 6]])

    def test_buffers(self):
        self.assertEqual(gradus.constant(array.array("d", [1, 2])).dtype, gradus.float64)
        self.assertEqual(gradus.constant(memoryview(np.int16([1, 2]))).tolist(), [1, 2])

    def test_what_is_no_tensor_is_an_error(self):
        class ForeignVariable:
            def __array__(self, dtype=None, copy=None):
                return np.zeros(2)

            def assign_add(self, value):
                pass

        for value, error, words in [([[1, 2], [3]], ValueError, "ragged"), (np.array([1, "a"], object), TypeError, "objects"),
                                    ("text", TypeError, "str"), (None, TypeError, "NoneType"), ({"a": 1}, TypeError, "dict"),
                                    (np.array(["a"]), TypeError, "type of element"), (np.zeros(2, complex), TypeError, "complex"),
                                    (np.array(["2020-01-01"], "datetime64[D]"), TypeError, "datetime"),
                                    (ForeignVariable(), TypeError, "variable of another library"),
                                    ([ForeignVariable()], TypeError, "variable of another library"),
                                    (np.ma.masked_array([1, 2], [True, False]), TypeError, "mask"), ([1, None], TypeError, "NoneType"),
                                    (["a"], TypeError, "str"), (1 << 70, OverflowError, "")]:
            with self.subTest(value=value):
                with self.assertRaisesRegex(error, words):
                    gradus.constant(value)
        with self.assertRaises(TypeError):
            gradus.constant(1.5, gradus.int32)


class Out(unittest.TestCase):
    def test_numpy_reads_the_tensor_in_place(self):
        x = gradus.constant(np.arange(6.0)) * 2
        a, b = x.numpy(), np.asarray(x)
        self.assertEqual(a.ctypes.data, b.ctypes.data)
        self.assertFalse(a.flags.writeable)
        with self.assertRaises(ValueError):
            a[0] = 1
        del x
        np.testing.assert_array_equal(a, np.arange(6.0) * 2)

    def test_protocols_of_arrays(self):
        x = gradus.constant([[1.0, 2.0]])
        self.assertEqual(memoryview(x).tolist(), [[1.0, 2.0]])
        self.assertEqual(bytes(x), np.float32([[1, 2]]).tobytes())
        self.assertEqual(np.asarray(x, np.float64).dtype, np.float64)
        self.assertTrue(np.array(x, copy=True).flags.writeable)
        self.assertIsInstance(np.float32([1, 1]) + x, gradus.Tensor)
        self.assertIsInstance(gradus.constant(1.0).numpy(), np.float32)
        half = gradus.constant([1.5], gradus.bfloat16)
        self.assertEqual(np.asarray(half).dtype, ml_dtypes.bfloat16)
        with self.assertRaises(BufferError):
            memoryview(half)

    def test_dlpack_shares_memory_in_both_directions(self):
        given = readable(6).reshape(2, 3)
        given[:] = np.arange(6).reshape(2, 3)
        x = gradus.from_dlpack(given, copy=False)
        self.assertEqual(x.numpy().ctypes.data, given.ctypes.data)
        back = np.from_dlpack(x)
        self.assertEqual(back.ctypes.data, given.ctypes.data)
        np.testing.assert_array_equal(gradus.from_dlpack(gradus.constant([1, 2])).numpy(), [1, 2])
        gaps = given[:, ::2]
        self.assertEqual(gradus.from_dlpack(gaps).tolist(), gaps.tolist())
        with self.assertRaises(ValueError):
            gradus.from_dlpack(gaps, copy=False)
        self.assertNotEqual(gradus.from_dlpack(given, copy=True).numpy().ctypes.data, given.ctypes.data)
        capsule = x.__dlpack__()
        gradus.from_dlpack(capsule)
        with self.assertRaisesRegex(TypeError, "taken before"):
            gradus.from_dlpack(capsule)

    def test_memory_of_another_library_is_kept_and_given_back(self):
        given = readable(4)
        given[:] = 1
        x = gradus.from_dlpack(given, copy=False)
        held = sys.getrefcount(given)
        y = x + 1
        del x
        self.assertEqual(y.tolist(), [2] * 4)
        del y
        for _ in range(100):
            pass
        self.assertLess(sys.getrefcount(given), held)

    def test_pickles_and_copies(self):
        for dtype in DTYPES:
            x = gradus.constant(of_dtype(dtype))
            for y in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
                self.assertEqual(y.dtype, x.dtype)
                np.testing.assert_array_equal(y.numpy(), x.numpy())
            self.assertIs(pickle.loads(pickle.dumps(x.dtype)).__class__, gradus.DType)
        spec = gradus.TensorSpec([None, 3], gradus.int32)
        self.assertEqual(pickle.loads(pickle.dumps(spec)), spec)


if __name__ == "__main__":
    unittest.main()
