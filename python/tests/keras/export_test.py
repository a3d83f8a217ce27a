"""Model.export: what is read back computes what the model does, and what cannot be written is refused."""
import contextlib
import ctypes
import importlib.util
import io
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import numpy as np

os.environ.setdefault("KERAS_BACKEND", "gradus")
if importlib.util.find_spec("keras") is None:
    raise SystemExit("skipped: Keras is not installed for this Python (GRADUS_KERAS_PYTHON names one that has it)")
import keras_gradus  # noqa: E402, F401

import gradus  # noqa: E402
import keras  # noqa: E402
from keras import layers, ops  # noqa: E402

RNG = np.random.default_rng(3)


def rows(*shape):
    return RNG.normal(size=shape).astype("float32")


def words(*shape):
    return RNG.integers(0, 9, shape).astype("int32")


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden, self.drop, self.last = layers.Dense(5, "gelu"), layers.Dropout(0.5), layers.Dense(2)

    def call(self, x, training=None):
        return self.last(self.drop(self.hidden(x), training=training))


def functional(make, *shapes, **options):
    inputs = [keras.Input(shape, **options) for shape in shapes]
    return keras.Model(inputs if len(inputs) > 1 else inputs[0], make(*inputs))


def of_dict():
    x, y = keras.Input((4,), name="x"), keras.Input((4,), name="y")
    return keras.Model({"x": x, "y": y}, {"sum": layers.add([x, y]), "scaled": layers.Dense(3)(x)})


def attending(x):
    y = layers.MultiHeadAttention(2, 4)(x, x)
    return layers.Dense(3)(layers.LayerNormalization()(layers.add([x, y])))


# name: (model, inputs of n rows)
MODELS = {
    "dense": (lambda: keras.Sequential([keras.Input((6,)), layers.Dense(5, "relu"), layers.BatchNormalization(),
                                        layers.Dense(2, "softmax")]), lambda n: rows(n, 6)),
    "convolution": (lambda: keras.Sequential([
        keras.Input((8, 8, 3)), layers.Conv2D(4, 3, strides=2, padding="same", activation="relu"),
        layers.DepthwiseConv2D(3, padding="same"), layers.MaxPooling2D(), layers.Flatten(), layers.Dense(3)]),
        lambda n: rows(n, 8, 8, 3)),
    "pooling": (lambda: keras.Sequential([
        keras.Input((8, 8, 2)), layers.Conv2DTranspose(3, 2), layers.AveragePooling2D(3), layers.GlobalAveragePooling2D()]),
        lambda n: rows(n, 8, 8, 2)),
    "lstm": (lambda: keras.Sequential([keras.Input((5, 3)), layers.LSTM(4, return_sequences=True), layers.GRU(3)]),
             lambda n: rows(n, 5, 3)),
    "bidirectional": (lambda: keras.Sequential([keras.Input((5, 3)), layers.Bidirectional(layers.LSTM(4))]),
                      lambda n: rows(n, 5, 3)),
    "masked": (lambda: keras.Sequential([keras.Input((6,), dtype="int32"), layers.Embedding(9, 4, mask_zero=True),
                                         layers.LSTM(3), layers.Dense(2)]), lambda n: words(n, 6)),
    "attention": (lambda: functional(attending, (5, 6)), lambda n: rows(n, 5, 6)),
    "two inputs": (lambda: functional(lambda a, b: layers.Dense(2)(layers.concatenate([a, layers.Dense(3, "tanh")(b)])),
                                      (4,), (2,)), lambda n: [rows(n, 4), rows(n, 2)]),
    "operations": (lambda: functional(lambda x: ops.mean(ops.exp(-ops.abs(x)), axis=1) + ops.max(x, axis=-1)[:, :3],
                                      (3, 3)), lambda n: rows(n, 3, 3)),
    "dicts": (of_dict, lambda n: {"x": rows(n, 4), "y": rows(n, 4)}),
    "subclassed": (Subclassed, lambda n: rows(n, 3)),
}


def made(name):
    model, inputs = MODELS[name]
    model = model()
    model(inputs(2))
    for variable in model.variables:  # statistics and biases, too, are other numbers than those of the start
        variable.assign(np.abs(rows(*variable.shape)) * 0.5 + 0.1)
    return model, inputs


def text_of(path):
    with open(path) as file:
        return file.read()


def leaves(nest):
    return [np.asarray(leaf) for leaf in keras.tree.flatten(nest)]


class Onnx(unittest.TestCase):
    def test_what_is_read_back_gives_the_outputs_for_any_number_of_rows(self):
        for name in MODELS:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                model, inputs = made(name)
                model.export(f"{folder}/net.onnx", format="onnx", verbose=False)
                net = gradus.onnx.load(f"{folder}/net.onnx")
                for count in (1, 3):
                    x = inputs(count)
                    for found, want in zip(net(*leaves(x)), leaves(model(x, training=False)), strict=True):
                        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)
                self._by_the_runtime(f"{folder}/net.onnx", model, inputs(3))

    def _by_the_runtime(self, file, model, x):
        if importlib.util.find_spec("onnxruntime") is None:
            return
        import onnxruntime
        session = onnxruntime.InferenceSession(file)
        given = dict(zip([each.name for each in session.get_inputs()], leaves(x), strict=True))
        for found, want in zip(session.run(None, given), leaves(model(x, training=False)), strict=True):
            np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)

    def test_inputs_have_the_names_and_sizes_of_the_model_or_of_the_signature(self):
        model, _ = made("dicts")
        with tempfile.TemporaryDirectory() as folder:
            model.export(f"{folder}/net.onnx", format="onnx", verbose=False)
            net = gradus.onnx.load(f"{folder}/net.onnx")
            self.assertEqual([port[:2] for port in net.inputs], [("x", (None, 4)), ("y", (None, 4))])
            x = {"x": rows(2, 4), "y": rows(2, 4)}
            np.testing.assert_allclose(net(**x)[0], leaves(model(x))[0], rtol=1e-5, atol=1e-5)
            with self.assertRaisesRegex(TypeError, "by their names"):
                net(x=x["x"])
            model, _ = made("dense")
            model.export(f"{folder}/net.onnx", format="onnx", verbose=False,
                         input_signature=[keras.InputSpec(shape=(2, 6), dtype="float32")])
            self.assertEqual(gradus.onnx.load(f"{folder}/net.onnx").inputs[0][1], (2, 6))

    def test_sizes_besides_that_of_the_batch_may_be_open(self):
        model = keras.Sequential([keras.Input((None, 3)), layers.Dense(4, "relu"), layers.GlobalMaxPooling1D()])
        with tempfile.TemporaryDirectory() as folder:
            model.export(f"{folder}/net.onnx", format="onnx", verbose=False)
            net = gradus.onnx.load(f"{folder}/net.onnx")
            for shape in ((1, 2, 3), (3, 5, 3)):
                x = rows(*shape)
                np.testing.assert_allclose(net(x)[0], model(x), rtol=1e-5, atol=1e-5)
            model = keras.Sequential([keras.Input((None, 3)), layers.LSTM(2)])  # its text takes sequences[:, 0, :]
            with self.assertRaisesRegex(ValueError, "open sizes.*None.*input_signature"):
                model.export(f"{folder}/other.onnx", format="onnx", verbose=False)
            self.assertEqual(os.listdir(folder), ["net.onnx"])
            model.export(f"{folder}/other.onnx", format="onnx", verbose=False,
                         input_signature=[keras.InputSpec(shape=(None, 4, 3), dtype="float32")])
            x = rows(3, 4, 3)
            np.testing.assert_allclose(gradus.onnx.load(f"{folder}/other.onnx")(x)[0], model(x), rtol=1e-5, atol=1e-5)

    def test_it_can_be_trained_again(self):
        model, inputs = made("dense")
        with tempfile.TemporaryDirectory() as folder:
            model.export(f"{folder}/net.onnx", format="onnx", verbose=False)
            net = gradus.onnx.load(f"{folder}/net.onnx")
            with gradus.GradientTape() as tape:
                loss = (net(inputs(4))[0] ** 2).sum()
            self.assertTrue(all(g is not None for g in tape.gradient(loss, net.trainable_variables)))
            self.assertEqual(gradus.onnx.load(f"{folder}/net.onnx", trainable=False).trainable_variables, [])

    def test_a_broken_file_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/net.onnx", "wb") as file:
                file.write(b"no model")
            with self.assertRaises(gradus.errors.OpError):
                gradus.onnx.load(f"{folder}/net.onnx")
            with self.assertRaises(gradus.errors.UnavailableError):
                gradus.onnx.load(f"{folder}/none.onnx")


def run_object(stem, inputs, shapes):
    """The outputs of an exported object, called through C: its shared library needs the C library alone."""
    name = os.path.basename(stem)
    shim = f"#include \"{name}.h\"\nunsigned long bytes(void) {{ return sizeof(struct {name}_state); }}\n"
    with open(f"{stem}_shim.c", "w") as file:
        file.write(shim)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", f"{stem}.so", f"{stem}_shim.c", f"{stem}.o"], check=True,
                   cwd=os.path.dirname(stem))
    library = ctypes.CDLL(f"{stem}.so")
    library.bytes.restype = ctypes.c_ulong
    state = ctypes.create_string_buffer(library.bytes() + 64)
    getattr(library, f"{name}_init")(state)
    outputs = [np.full(shape, np.nan, "float32") for shape in shapes]
    inputs = [np.ascontiguousarray(x) for x in inputs]
    getattr(library, name)(state, *(x.ctypes.data_as(ctypes.c_void_p) for x in [*inputs, *outputs]))
    return outputs


class Objects(unittest.TestCase):
    @unittest.skipUnless(shutil.which("cc"), "there is no C compiler")
    def test_a_program_in_c_gets_the_outputs(self):
        for name in MODELS:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                model, inputs = made(name)
                model.export(f"{folder}/net.o", format="object", batch_size=3, verbose=False)
                self.assertEqual(sorted(os.listdir(folder)), ["net.h", "net.o"])
                x = inputs(3)
                want = leaves(model(x, training=False))
                found = run_object(f"{folder}/net", leaves(x), [each.shape for each in want])
                for a, b in zip(found, want, strict=True):
                    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)

    def test_weights_may_be_a_file_of_their_own(self):
        model, _ = made("dense")
        with tempfile.TemporaryDirectory() as folder:
            model.export(f"{folder}/net", format="object", verbose=False, weights=f"{folder}/net.weights")
            self.assertEqual(sorted(os.listdir(folder)), ["net.h", "net.o", "net.weights"])
            self.assertNotIn("net_init", text_of(f"{folder}/net.h"))

    def test_open_sizes_names_and_instructions_are_refused(self):
        model = keras.Sequential([keras.Input((None, 3)), layers.LSTM(2)])
        with tempfile.TemporaryDirectory() as folder:
            for format in ("object", "stablehlo"):
                with self.assertRaisesRegex(ValueError, "known sizes.*input_signature"):
                    model.export(f"{folder}/net", format=format, verbose=False)
            with self.assertRaisesRegex(ValueError, "int"):
                made("dense")[0].export(f"{folder}/int", format="object", verbose=False)
            with self.assertRaisesRegex(gradus.errors.OpError, "sse9"):
                made("dense")[0].export(f"{folder}/net", format="object", verbose=False, instruction_set="sse9")
            self.assertEqual(os.listdir(folder), [])
            signature = [keras.InputSpec(shape=(2, 4, 3), dtype="float32")]
            model.export(f"{folder}/net", format="object", verbose=False, input_signature=signature)
            self.assertEqual(sorted(os.listdir(folder)), ["net.h", "net.o"])


class StableHlo(unittest.TestCase):
    def test_the_text_has_the_inputs_weights_and_outputs(self):
        model, _ = made("two inputs")
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(2):
                model.export(f"{folder}/net.mlir", format="stablehlo", batch_size=5, verbose=False)
                text = text_of(f"{folder}/net.mlir")
                head = re.search(r"func\.func public @main\((.*?)\) -> \((.*?)\) \{", text, re.S)
                self.assertIsNotNone(head, text[:2000])
                self.assertEqual(re.findall(r"tensor<([\dx]*f32)>", head[1])[:2], ["5x4xf32", "5x2xf32"])
                self.assertIn("tensor<5x2xf32>", head[2])
                for variable in model.variables:
                    sizes = "x".join(map(str, variable.shape))
                    self.assertIn(f"tensor<{sizes}xf32>", head[1])

    @unittest.skipUnless(importlib.util.find_spec("jax"), "JAX is not installed")
    def test_xla_computes_it(self):
        for name in MODELS:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                model, inputs = made(name)
                model.export(f"{folder}/net.mlir", format="stablehlo", batch_size=3, verbose=False)
                x = inputs(3)
                found = run_text(text_of(f"{folder}/net.mlir"), leaves(x), {v.path: np.asarray(v) for v in model.variables})
                want = leaves(model(x, training=False))
                for a, b in zip(found, want):  # behind them are faults of data
                    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def run_text(text, inputs, variables):
    """The results of StableHLO in JAX's compiler; comments say which argument is which Variable."""
    import jax
    from jax._src import xla_bridge
    from jax._src.lib import xla_client
    meanings = re.findall(r"^// %arg(\d+): (.*)$", text, re.M)
    specs = re.findall(r"%arg\d+: tensor<([^>]*)>", re.search(r"@main\((.*?)\) ->", text, re.S)[1])
    arguments = []
    for (_, meaning), spec in zip(meanings, specs, strict=True):
        if argument := re.match(r"argument (\d+) of the step", meaning):
            arguments.append(inputs[int(argument[1])])
        elif variable := re.match(r"Variable ([^;]*)", meaning):
            arguments.append(variables[variable[1].strip("`'\"")])
        else:
            *sizes, kind = spec.split("x")
            arguments.append(np.zeros([int(size) for size in sizes], {"i64": "int64", "i32": "int32", "f32": "float32"}[kind]))
    with jax.enable_x64(True):
        arguments = [jax.device_put(each) for each in arguments]
    backend = xla_bridge.get_backend("cpu")
    program = backend.compile_and_load(text, xla_client.DeviceList(tuple(backend.devices()[:1])), xla_client.CompileOptions())
    return [np.asarray(parts[0]) for parts in program.execute_sharded(arguments).disassemble_into_single_device_arrays()]


class Refusals(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def test_formats(self):
        model, _ = made("dense")
        with self.assertRaisesRegex(ValueError, "Unrecognized format=pickle.*onnx.*object.*stablehlo"):
            model.export(f"{self.folder.name}/net", format="pickle")
        with self.assertRaisesRegex(NotImplementedError, "onnx"):
            model.export(f"{self.folder.name}/net")
        with self.assertRaises((ValueError, NotImplementedError)):
            model.export(f"{self.folder.name}/net", format="openvino")
        with self.assertRaisesRegex(ValueError, "operator set 23"):
            model.export(f"{self.folder.name}/net", format="onnx", opset_version=11)
        with self.assertRaises(TypeError):
            model.export(f"{self.folder.name}/net", format="stablehlo", opset_version=11)
        self.assertEqual(os.listdir(self.folder.name), [])

    def test_models_that_are_not_built(self):
        for model in (keras.Sequential([layers.Dense(2)]), Subclassed()):
            for format in ("onnx", "object", "stablehlo"):
                with self.assertRaisesRegex(ValueError, "not yet been built|never called"):
                    model.export(f"{self.folder.name}/net", format=format)
                with self.assertRaisesRegex(ValueError, "not yet been built|never called"):
                    model.export(f"{self.folder.name}/net", format=format,
                                 input_signature=[keras.InputSpec(shape=(1, 3), dtype="float32")])
        self.assertEqual(os.listdir(self.folder.name), [])

    def test_a_folder_that_does_not_exist(self):
        model, _ = made("dense")
        for format in ("onnx", "object", "stablehlo"):
            with self.assertRaises(OSError):
                model.export(f"{self.folder.name}/none/net", format=format)

    def test_a_message_says_where_the_file_is(self):
        model, _ = made("dense")
        keras.config.disable_interactive_logging()
        for verbose, expected in ((None, "Saved artifact"), (False, "")):
            out = io.StringIO()
            with contextlib.redirect_stdout(out), self.assertLogs("absl") as logs:
                import absl.logging
                absl.logging.info("begin")
                model.export(f"{self.folder.name}/net.mlir", format="stablehlo", verbose=verbose)
            self.assertEqual(expected in out.getvalue() + "".join(logs.output), True)
        keras.config.enable_interactive_logging()


class Functions(unittest.TestCase):
    """What the exports stand on: gradus.function and gradus.onnx."""

    def test_a_training_step_keeps_its_state(self):
        w = gradus.Variable(np.ones((3, 1), "float32"), "w")

        @gradus.function
        def learn(x, y):
            with gradus.GradientTape() as tape:
                loss = gradus.Loss.mean((x @ w - y) ** 2)
            w.assign_sub(tape.gradient(loss, w) * 0.1)
            return loss
        specs = [gradus.TensorSpec((4, 3)), gradus.TensorSpec((4, 1))]
        with tempfile.TemporaryDirectory() as folder:
            obj, header, weights = learn.export_object(f"{folder}/learn", specs)
            self.assertEqual((obj.name, header.name, weights), ("learn.o", "learn.h", None))
            self.assertIn("float learn(", text_of(header))
        self.assertIn("tf.aliasing_output", learn.stablehlo(specs))
        with self.assertRaisesRegex(ValueError, "known sizes"):
            learn.stablehlo([gradus.TensorSpec((None, 3)), gradus.TensorSpec((None, 1))])

    def test_onnx_refuses_random_numbers(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaises(gradus.errors.InvalidArgumentError):
                gradus.onnx.export(f"{folder}/net", lambda x: x + gradus.random.normal([2, 2]), [gradus.TensorSpec((2, 2))])
            self.assertEqual(os.listdir(folder), [])


if __name__ == "__main__":
    unittest.main()
