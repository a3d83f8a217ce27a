"""Functions as object files: one step, several with one state, the state of a program that came back."""
import ctypes
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import numpy as np

import gradus
from gradus import errors

SPECS = [gradus.TensorSpec((4, 3)), gradus.TensorSpec((4, 1))]
X = np.linspace(-1, 1, 12, dtype="float32").reshape(4, 3)
Y = np.array([[1], [0], [2], [1]], "float32")


def steps():
    """A weight, a step that trains it, and one that predicts with it."""
    w = gradus.Variable(np.ones((3, 1), "float32"), "w")

    @gradus.function
    def train(x, y):
        with gradus.GradientTape() as tape:
            loss = gradus.Loss.mean((x @ w - y) ** 2)
        w.assign_sub(tape.gradient(loss, w) * 0.1)
        return loss

    return w, train, gradus.function(lambda x: x @ w)


class Program:
    """The steps `net_train` and `net_predict` of net.o and net.h, in a shared library."""

    def __init__(self, folder):
        source = folder / "main.c"
        source.write_text('#include "net.h"\nunsigned long size(void) { return sizeof(struct net_state); }\n')
        library = folder / "net.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, folder / "net.o", "-lm"], check=True)
        self.c = ctypes.CDLL(str(library))
        self.c.size.restype, self.c.net_train.restype = ctypes.c_ulong, ctypes.c_float
        room = ctypes.create_string_buffer(self.c.size() + 64)
        self.state = ctypes.c_void_p(-(-ctypes.addressof(room) // 64) * 64)
        self.room = room
        self.c.net_init(self.state)

    def bytes(self):
        return ctypes.string_at(self.state.value, self.c.size())


def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)


@unittest.skipUnless(shutil.which("cc") and shutil.which("ld") and shutil.which("objcopy"), "objects are linked by binutils")
class Objects(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_two_steps_share_a_state_that_comes_back(self):
        w, train, predict = steps()
        made = gradus.export_objects(self.folder / "net", {"train": (train, SPECS), "predict": (predict, SPECS[:1])})
        self.assertEqual([each and each.name for each in made], ["net.o", "net.h", None])
        program = Program(self.folder)
        self.assertEqual(program.c.net_supported(), 1)
        for _ in range(5):
            loss = program.c.net_train(program.state, pointer(X), pointer(Y))
            self.assertEqual(np.float32(loss), np.float32(train(X, Y).numpy()))
        found = np.zeros((4, 1), "float32")
        program.c.net_predict(program.state, pointer(X), pointer(found))
        np.testing.assert_array_equal(found, predict(X).numpy())

        state = self.folder / "state.bin"
        state.write_bytes(program.bytes())
        trained = w.numpy()
        w.assign(np.zeros((3, 1), "float32"))
        gradus.load_object_state(state, self.folder / "net.h", [w])
        np.testing.assert_array_equal(w.numpy(), trained)

    def test_a_state_of_another_size_and_unknown_fields_are_refused(self):
        w, train, _ = steps()
        train.export_object(self.folder / "net", SPECS)
        state = self.folder / "state.bin"
        state.write_bytes(b"short")
        with self.assertRaisesRegex(errors.DataLossError, "size|bytes"):
            gradus.load_object_state(state, self.folder / "net.h", [w])
        with self.assertRaises(errors.OpError):
            gradus.load_object_state(state, self.folder / "none.h", [w])
        with self.assertRaises(TypeError):
            gradus.load_object_state(state, self.folder / "net.h", [1.0])
        np.testing.assert_array_equal(w.numpy(), np.ones((3, 1)))

    def test_a_signature_serves_as_specs_and_weights_have_a_file(self):
        w = gradus.Variable(np.ones((3, 1), "float32"), "w")
        predict = gradus.function(lambda x: x @ w, input_signature=SPECS[:1])
        instruction_set = "avx2" if os.uname().machine == "x86_64" else ""
        header = gradus.export_objects(self.folder / "net", {"predict": predict}, instruction_set=instruction_set)[1]
        self.assertIn("net_predict(", header.read_text())
        weights = gradus.export_objects(self.folder / "net", {"predict": predict}, weights=self.folder / "w")[2]
        self.assertEqual(weights, self.folder / "w")

    def test_bad_steps_are_refused_and_write_nothing(self):
        _, train, predict = steps()
        for given, error, message in (
                ({}, ValueError, "no step is given"),
                ({"a b": (predict, SPECS[:1])}, ValueError, "a b"),
                ({"predict": predict}, TypeError, "missing"),
                ({"predict": (predict, [gradus.TensorSpec((None, 3))])}, ValueError, "known sizes|size"),
                ({"train": (train, SPECS), "predict": lambda x: x}, TypeError, "'predict' is a function"),
                ({"predict": (predict, [1])}, TypeError, "")):
            with self.subTest(given=given), self.assertRaisesRegex(error, message):
                gradus.export_objects(self.folder / "net", given)
        for weights in ("", self.folder / "net.o", self.folder / "." / "net.h", self.folder):
            with self.subTest(weights=weights), self.assertRaisesRegex(ValueError, "weights|is a directory"):
                gradus.export_objects(self.folder / "net", {"predict": (predict, SPECS[:1])}, weights=weights)
            with self.subTest(weights=weights), self.assertRaisesRegex(ValueError, "weights|is a directory"):
                predict.export_object(self.folder / "net", SPECS[:1], weights=weights)
        with self.assertRaisesRegex(ValueError, "sparc"):
            gradus.export_objects(self.folder / "net", {"predict": (predict, SPECS[:1])}, target="sparc")
        self.assertEqual(os.listdir(self.folder), [])


if __name__ == "__main__":
    unittest.main()
