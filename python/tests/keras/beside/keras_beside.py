"""Twelve programs of Keras by two backends, each in a process of its own, from the same first weights: the losses of ten
steps are the same.

    keras_beside.py [PYTHON]           PYTHON has keras and jax; else they are installed as for the benchmarks
    keras_beside.py --run OUT.json     by the backend of KERAS_BACKEND
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[3]
APART = 1e-4


def run(out):
    """Losses, how far apart they may be, and seconds of each program."""
    if os.environ["KERAS_BACKEND"] == "gradus":
        import keras_gradus  # noqa: F401  a wheel's .pth file does it
    import images  # noqa: F401  they list their programs
    import sequences  # noqa: F401
    from ten_steps import PROGRAMS
    found = {}
    for name, program in PROGRAMS.items():
        start = time.perf_counter()
        losses = program()
        losses, apart = losses if isinstance(losses, tuple) else (losses, APART)
        found[name] = {"losses": losses, "apart": apart, "seconds": time.perf_counter() - start}
    pathlib.Path(out).write_text(json.dumps(found))


def python_of_jax():
    if len(sys.argv) > 1:
        return sys.argv[1]
    subprocess.run([ROOT / "tools/install_peer.sh", "jax"], check=True)
    return ROOT / ".venv-jax/bin/python"


def found_by(python, backend):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "found.json")
        environment = os.environ | {"KERAS_BACKEND": backend}
        if backend != "gradus":
            environment.pop("PYTHONPATH", None)
        subprocess.run([python, __file__, "--run", str(out)], check=True, env=environment, cwd=HERE)
        return json.loads(out.read_text())


class Programs(unittest.TestCase):
    def test_backends_have_the_same_losses(self):
        ours, theirs = found_by(sys.executable, "gradus"), found_by(python_of_jax(), "jax")
        self.assertEqual(len(ours), 12)
        for name, row in ours.items():
            peer = theirs[name]
            print(f"{name}: {row['seconds']:.2f} s, by JAX {peer['seconds']:.2f} s; losses "
                  f"{max(abs(a - b) / max(1, abs(b)) for a, b in zip(row['losses'], peer['losses'])):.1e} apart", flush=True)
            with self.subTest(name):
                self.assertEqual(len(row["losses"]), 10)
                for a, b in zip(row["losses"], peer["losses"]):
                    self.assertLess(abs(a - b), row["apart"] * max(1, abs(b)))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        run(sys.argv[2])
    else:
        unittest.main(argv=sys.argv[:1])
