"""Keras's layers of texts and tables, its helpers for data sets and TensorBoard, in processes that have no TensorFlow: values are those
that TensorFlow gave (texts/expected.json)."""
import importlib.util
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

if importlib.util.find_spec("keras") is None:
    raise SystemExit("skipped: Keras is not installed for this Python (GRADUS_KERAS_PYTHON names one that has it)")

HERE = pathlib.Path(__file__).resolve().parent / "texts"
EXPECTED = json.loads((HERE / "expected.json").read_text(encoding="utf-8"))
# Without what an environment may have beside Keras. in_keras says what of the engine a program needs.
WITHOUT = '''
import sys
class Hidden:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in ("tensorflow", "tensorflow_io", "tensorboard", "jax", "torch"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hidden)
'''
PROLOGUE = WITHOUT + '''
import keras_gradus, keras, numpy as np, os, tempfile
import gradus.tensorflow as tf
from keras import layers as L
DOCUMENTS, LABELS = np.array(["good day", "bad day", "good good", "bad bad"]), np.array([1, 0, 1, 0], "float32")
'''


def run(program, *arguments, **environment):
    """The standard output of a new Python that runs a program; AssertionError if it fails."""
    env = {**os.environ, "KERAS_BACKEND": "gradus", **environment}
    done = subprocess.run([sys.executable, "-c", program, *arguments], env=env, capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(done.stderr[-4000:])
    return done.stdout


def differences(wanted, found, path=""):
    """The places where two nests differ; numbers may by 1e-5 of their size."""
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        return [each for i, pair in enumerate(zip(wanted, found)) for each in differences(*pair, f"{path}[{i}]")]
    if isinstance(wanted, dict) and isinstance(found, dict) and wanted.keys() == found.keys():
        return [each for key in wanted for each in differences(wanted[key], found[key], f"{path}[{key!r}]")]
    if type(wanted) is type(found) is float and math.isclose(wanted, found, rel_tol=1e-5, abs_tol=1e-6):
        return []
    return [] if wanted == found and type(wanted) is type(found) else [f"{path}: {str(wanted)[:100]} wanted, {str(found)[:100]} found"]


class Values(unittest.TestCase):
    def test_values_are_tensorflows(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "found.json")
            run(WITHOUT + "import keras_gradus, pathlib\nsys.path.insert(0, sys.argv[1])\nimport cases\n"
                "pathlib.Path(sys.argv[2]).write_text(cases.written(cases.CASES), encoding='utf-8')\n", str(HERE), str(file))
            found = json.loads(file.read_text(encoding="utf-8"))
        self.assertEqual(found.keys(), EXPECTED.keys())
        for name, wanted in EXPECTED.items():
            with self.subTest(name=name):
                self.assertEqual(differences(wanted, found[name]), [])

    def test_a_difference_is_seen(self):
        self.assertEqual(len(differences([1, [2.0, "a"]], [1, [2.1, "b"]])), 2)
        self.assertEqual(len(differences([1], [1, 1])) + len(differences(1, 1.0)) + len(differences({"a": 1}, {"b": 1})), 3)


class Models(unittest.TestCase):
    def test_models_take_texts(self):
        said = run(PROLOGUE + '''
words = L.TextVectorization(output_mode="multi_hot")
words.adapt(DOCUMENTS)
model = keras.Sequential([keras.Input((1,), dtype="string"), words, L.Dense(1, activation="sigmoid")])
model.compile(keras.optimizers.SGD(0.5), "binary_crossentropy", metrics=["accuracy"])
rows = DOCUMENTS[:, None]
history = model.fit(rows, LABELS, epochs=20, batch_size=2, verbose=0, class_weight={0: 1.0, 1: 2.0}).history["loss"]
print(history[-1] < history[0], sorted(model.fit(rows, LABELS, validation_split=0.5, verbose=0).history))
wanted = model.predict(rows, verbose=0)
same = [model.predict(each, verbose=0) for each in (tf.constant(rows), rows.astype(object), DOCUMENTS, list(DOCUMENTS))]
same += [model.predict_on_batch(rows), np.asarray(model(rows))]
data = tf.data.Dataset.from_tensor_slices((rows, LABELS)).batch(3)
same += [model.predict(data, verbose=0)]
print([bool(np.allclose(each, wanted)) for each in same], wanted.shape)
print(np.allclose(model.evaluate(rows, LABELS, verbose=0), model.evaluate(data, verbose=0)), len(model.train_on_batch(rows, LABELS)))
with tempfile.TemporaryDirectory() as folder:
    model.save(os.path.join(folder, "net.keras"))
    again = keras.models.load_model(os.path.join(folder, "net.keras"))
print(np.array_equal(again.predict(rows, verbose=0), model.predict(rows, verbose=0)))
''')
        self.assertEqual(said.splitlines(), [
            "True ['accuracy', 'loss', 'val_accuracy', 'val_loss']", f"{[True] * 7} (4, 1)", "True 2", "True"])

    def test_fits_on_mapped_data(self):
        said = run(PROLOGUE + '''
words = L.TextVectorization(output_sequence_length=3)
data = tf.data.Dataset.from_tensor_slices((DOCUMENTS, LABELS)).batch(3)
words.adapt(data.map(lambda text, label: text))
numbers = data.map(lambda text, label: (words(text), label))
model = keras.Sequential([L.Embedding(words.vocabulary_size(), 4), L.GlobalAveragePooling1D(), L.Dense(1, activation="sigmoid")])
model.compile(keras.optimizers.Adam(0.1), "binary_crossentropy")
history = model.fit(numbers, epochs=15, validation_data=numbers, verbose=0).history
print(history["val_loss"][-1] < 0.1 * history["val_loss"][0], model.predict(numbers, verbose=0).shape)
weighted = [model.evaluate(numbers, verbose=0), model.fit(numbers, class_weight={0: 0.0, 1: 0.0}, verbose=0).history["loss"][0]]
print(weighted[0] > 0, weighted[1])
series = keras.utils.timeseries_dataset_from_array(np.arange(40.0)[:, None], np.arange(40.0), sequence_length=4, batch_size=8)
forecast = keras.Sequential([L.Flatten(), L.Dense(1)])
forecast.compile("adam", "mse")
print(sorted(forecast.fit(series, verbose=0, validation_data=keras.utils.split_dataset(series.unbatch(), 0.5)[0].batch(4)).history))
''')
        self.assertEqual(said.splitlines(), ["True (4, 1)", "True 0.0", "['loss', 'val_loss']"])

    def test_what_cannot_be_is_said(self):
        said = run(PROLOGUE + '''
def message(call):
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}".replace("\\n", " ")
    return "nothing was raised"
dense = keras.Sequential([L.Dense(1)])
dense.compile("sgd", "mse")
data = tf.data.Dataset.from_tensor_slices((DOCUMENTS, LABELS)).batch(2)
strict = L.StringLookup(vocabulary=["a"], num_oov_indices=0)
for call in (lambda: dense.fit(DOCUMENTS[:, None], LABELS, verbose=0), lambda: dense.fit(data, verbose=0),
             lambda: dense.fit(data, LABELS, verbose=0), lambda: dense.fit(data, sample_weight=LABELS, verbose=0),
             lambda: strict(["a", "b"]), lambda: L.TextVectorization(sparse=True), lambda: L.TextVectorization(ragged=True),
             lambda: L.Hashing(3, output_mode="one_hot", sparse=True)(["a"]),
             lambda: L.IntegerLookup(vocabulary=[1])(["a"]), lambda: L.HashedCrossing(3)((["a"],)),
             lambda: L.TextVectorization(vocabulary=["a"])([["a", "b"]]), lambda: L.StringLookup(vocabulary=["a", "a"]),
             lambda: L.StringLookup(vocabulary="/nowhere/words.txt")):
    print(message(call))
''')
        lines = said.splitlines()
        for line, text in zip(lines, ["mapped over the data", "mapped over the data", "leave out y", "leave out sample_weight", "found OOV values",
                                      "TensorFlow backend", "TensorFlow backend", "sparse", "class str",
                                      "at least two inputs", "must be 1", "repeated", "nowhere"], strict=True):
            self.assertRegex(line, f"(Error|Exception).*({text})")


class Events(unittest.TestCase):
    def test_tensorboard_writes_event_files(self):
        said = run(PROLOGUE + '''
import glob
from gradus import _native
folder = tempfile.mkdtemp()
model = keras.Sequential([L.Dense(2), L.Dense(1)])
model.compile("sgd", "mse", metrics=["mae"])
x = np.ones([8, 3], "float32")
board = keras.callbacks.TensorBoard(folder, histogram_freq=1, write_images=True, update_freq=1, write_steps_per_second=True)
model.fit(x, x[:, :1], validation_data=(x, x[:, :1]), epochs=2, batch_size=4, verbose=0, callbacks=[board])
for part in ("train", "validation"):
    files = glob.glob(os.path.join(folder, part, "events.out.tfevents.*"))
    records = [record for file in files for record in _native._records(file)]  # which checks their sums
    named = [tag for tag in (b"epoch_loss", b"epoch_mae", b"batch_loss", b"kernel/histogram", b"kernel/image", b"graph_keras_model",
                             b"epoch_steps_per_second", b"evaluation_loss_vs_iterations") if any(tag in record for record in records)]
    print(len(files), sum(b"epoch_loss" in record for record in records), *[tag.decode() for tag in named])
''')
        self.assertEqual(said.splitlines(), [
            "1 2 epoch_loss epoch_mae batch_loss kernel/histogram kernel/image graph_keras_model epoch_steps_per_second",
            "1 2 epoch_loss epoch_mae evaluation_loss_vs_iterations"])


class Programs(unittest.TestCase):
    def test_a_program_of_tensorflow_runs_as_it_is(self):
        program = '''
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers
documents = ["good day", "bad day", "good good", "bad bad"]
data = tf.data.Dataset.from_tensor_slices((documents, [1, 0, 1, 0])).batch(3)
words = layers.TextVectorization(output_sequence_length=3)
words.adapt(data.map(lambda text, label: text))
print(words.get_vocabulary(include_special_tokens=False)[0], words(["bad day"]).numpy().tolist())
print(isinstance(tf.strings.split(documents), tf.RaggedTensor), layers.Hashing(3)(["a", "b", "c"]).numpy().tolist())
model = keras.Sequential([layers.Embedding(6, 4), layers.GlobalAveragePooling1D(), layers.Dense(1, activation="sigmoid")])
model.compile("adam", "binary_crossentropy")
folder = __file__ + ".logs"
model.fit(data.map(lambda text, label: (words(text), label)), verbose=0, callbacks=[keras.callbacks.TensorBoard(folder)])
whole = keras.Sequential([keras.Input((1,), dtype="string"), words, model])
print(len(tf.io.gfile.listdir(folder + "/train")), whole.predict(tf.constant([["good"]]), verbose=0).shape)
sizes = tf.data.Dataset.from_tensor_slices([[1.0, 2.0], [3.0, 5.0], [2.0, 2.0]]).batch(2)
scaled, codes = layers.Normalization(mean=[1.0, 1.0], variance=[1.0, 4.0]), layers.IntegerLookup(vocabulary=[3, 4])
print([each.numpy().tolist() for each in sizes.map(scaled)], codes([3, 9]).numpy().tolist())
'''
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "program.py")
            file.write_text(program, encoding="utf-8")
            done = subprocess.run([sys.executable, "-m", "gradus.run", str(file)], capture_output=True, text=True)
        self.assertEqual(done.stdout.splitlines(), [
            "good [[3, 4, 0]]", "True [0, 1, 1]", "1 (1, 1)", "[[[0.0, 0.5], [2.0, 2.0]], [[1.0, 0.5]]] [1, 0]"], done.stderr)

    @unittest.skipUnless(importlib.util.find_spec("tensorflow"), "TensorFlow is not installed")
    def test_an_installed_tensorflow_stays(self):
        said = run("import keras_gradus, keras\nfrom keras.src.utils.module_utils import tensorflow\n"
                   "layer = keras.layers.StringLookup(vocabulary=['a'])\nprint(tensorflow.__version__, layer(['a', 'b']).numpy().tolist())")
        version, _, rest = said.strip().partition(" ")
        self.assertEqual((version.split(".")[0], rest), ("2", "[1, 0]"))


if __name__ == "__main__":
    unittest.main()
