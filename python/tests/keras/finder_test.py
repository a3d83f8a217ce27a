"""How Keras finds the backend: branches in modules that list backends, the ways to choose it, refusals."""
import ast
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from keras_gradus import finder

LISTS = '''
if backend() == "tensorflow":
    from keras.src.backend.tensorflow import *
elif backend() == "numpy":
    from keras.src.backend.numpy import *
    from keras.src.backend.numpy.core import Variable as BackendVariable
    from keras.src.backend.numpy.trainer import NumpyTrainer as Trainer

    distribution_lib = None
else:
    raise ValueError("none")
NAMES = ("tensorflow", "jax", "torch", "numpy", "openvino")
'''
LOADER = '''
def load(name):
    return importlib.import_module(f"keras_{name}.src")
'''
HAS_KERAS = importlib.util.find_spec("keras") is not None


def run(program, **environment):
    """The output of a new Python that runs a program."""
    env = {**os.environ, **environment}
    env = {name: value for name, value in env.items() if value is not None}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True)
    return done.stdout + done.stderr


class Branches(unittest.TestCase):
    def test_a_branch_is_added_that_imports_this_backend(self):
        tree, count = finder.with_branches(LISTS, "lists.py")
        text = ast.unparse(tree)
        self.assertEqual(count, 2)
        self.assertIn("elif backend() == 'gradus':\n    from keras_gradus.src import *\n"
                      "    from keras_gradus.src import Variable as BackendVariable\n"
                      "    from keras_gradus.src.trainer import GradusTrainer as Trainer\nelse:", text)
        self.assertEqual(text.count("distribution_lib = None"), 1, "this backend has one")
        self.assertIn("'openvino', 'gradus')", text)
        self.assertIn("raise ValueError('none')", text)

    def test_other_branches_stay(self):
        text = ast.unparse(finder.with_branches(LISTS, "lists.py")[0])
        self.assertIn("elif backend() == 'numpy':\n    from keras.src.backend.numpy import *", text)

    def test_what_other_backends_lack_is_not_copied(self):
        tree, count = finder.with_branches("if backend.backend() == 'numpy':\n    warnings.warn('masks are ignored')\n", "x.py")
        self.assertEqual((count, ast.unparse(tree).count("if")), (0, 1))

    def test_a_module_that_lists_nothing_counts_nothing(self):
        self.assertEqual(finder.with_branches("x = ('numpy', 'list')\nif mode() == 'numpy':\n    pass\n", "other.py")[1], 0)

    def test_a_keras_that_loads_packages_needs_no_branch(self):
        self.assertTrue(finder.loads_packages(LOADER))
        self.assertFalse(finder.loads_packages(LISTS))


class Choice(unittest.TestCase):
    def test_the_environment_comes_before_the_file(self):
        with tempfile.TemporaryDirectory() as home:
            pathlib.Path(home, "keras.json").write_text(json.dumps({"backend": "gradus"}))
            ask = "import sys, keras_gradus.finder as f; print(f.chosen())"
            self.assertEqual(run(ask, KERAS_HOME=home, KERAS_BACKEND=None), "gradus\n")
            self.assertEqual(run(ask, KERAS_HOME=home, KERAS_BACKEND=""), "gradus\n")
            self.assertEqual(run(ask, KERAS_HOME=home, KERAS_BACKEND="jax"), "jax\n")
            pathlib.Path(home, "keras.json").write_text("no json")
            self.assertEqual(run(ask, KERAS_HOME=home, KERAS_BACKEND=None), "None\n")

    def test_it_is_installed_once(self):
        said = run("import sys, keras_gradus\nfrom keras_gradus import finder\nfinder.install()\ndel sys.modules['keras_gradus'], "
                   "sys.modules['keras_gradus.finder']\nimport keras_gradus\n"
                   "print(sum(getattr(f, '__module__', '') == 'keras_gradus.finder' for f in sys.meta_path))")
        self.assertEqual(said, "1\n")

    def test_importing_the_package_loads_neither_keras_nor_the_engine(self):
        said = run("import sys, keras_gradus; print([m for m in ('keras', 'gradus', 'numpy') if m in sys.modules])")
        self.assertEqual(said, "[]\n")


@unittest.skipUnless(HAS_KERAS, "Keras is not installed for this Python")
class WithKeras(unittest.TestCase):
    def test_keras_json_and_set_backend_choose_it(self):
        with tempfile.TemporaryDirectory() as home:
            pathlib.Path(home, "keras.json").write_text(json.dumps({"backend": "gradus", "floatx": "float32", "epsilon": 1e-7}))
            said = run("import keras_gradus, warnings, keras\nwarnings.simplefilter('ignore')\nprint(keras.config.backend())\n"
                       "first = keras\nkeras.config.set_backend('gradus')\nimport keras\n"
                       "print(first is keras, keras.config.backend(), type(keras.ops.ones(2)).__module__)",
                       KERAS_HOME=home, KERAS_BACKEND=None)
        self.assertEqual(said.splitlines()[-2:], ["gradus", "False gradus gradus._native"])

    def test_an_unknown_keras_is_refused_in_a_sentence(self):
        said = run("import keras_gradus\nfrom keras_gradus import finder\nfinder.PLACES['keras.src.models.model'] = 9\n"
                   "import keras", KERAS_BACKEND="gradus")
        self.assertIn("ImportError: the backend gradus does not know this Keras", said.splitlines()[-1])
        self.assertIn("keras.src.models.model lists the backends at 1 places, where at least 9 were expected", said)


if __name__ == "__main__":
    unittest.main()
