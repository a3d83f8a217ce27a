"""The wheel in one process with other libraries that bring a compiler of their own (TensorFlow's exports its LLVM): each is
imported before and after Gradus, and both compile and compute.

    beside.py FOLDER_OF_THE_WHEEL SCRATCH [NAME=PYTHON...]        NAME is tensorflow, jax or torch

Where none is named, TensorFlow and JAX are installed into the environments of the benchmarks' peers, and PyTorch is tried
where `make bench` has installed it, since its package brings several GB along.
"""
import pathlib
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import fresh  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]
OURS = """
import numpy as np, gradus
def ours(k):
    f = gradus.function(lambda x: (gradus.ops.tanh(x) * k).sum())
    assert abs(f(np.full((3, 5), 0.5, np.float32)).item() - 15 * k * np.tanh(0.5)) < 1e-4
ours(2.0)
"""
THEIRS = {
    "tensorflow": """
import numpy as np, tensorflow as tf
def theirs(k):
    f = tf.function(lambda x: tf.reduce_sum(tf.tanh(x) * k), jit_compile=True)
    assert abs(float(f(tf.fill((3, 5), 0.5))) - 15 * k * np.tanh(0.5)) < 1e-4
theirs(2.0)
""",
    "jax": """
import numpy as np, jax
def theirs(k):
    f = jax.jit(lambda x: (jax.numpy.tanh(x) * k).sum())
    assert abs(float(f(np.full((3, 5), 0.5, np.float32))) - 15 * k * np.tanh(0.5)) < 1e-4
theirs(2.0)
""",
    "torch": """
import numpy as np, torch
def theirs(k):
    x = torch.full((3, 5), 0.5, requires_grad=True)
    y = (torch.tanh(x) * k).sum()
    y.backward()
    assert abs(float(y.detach()) - 15 * k * np.tanh(0.5)) < 1e-4
theirs(2.0)
""",
}
BOTH = "\nours(3.0); theirs(3.0); ours(4.0); theirs(4.0)\n"


def has(python, module):
    return subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode == 0


def try_beside(wheel, scratch, name, python):
    """The wheel without its dependencies, in a folder of its own: the other library's environment stays as it is."""
    folder = scratch / f"beside_{name}"
    shutil.rmtree(folder, ignore_errors=True)
    missing = [module for module in ("numpy", "ml_dtypes") if not has(python, module)]
    fresh.pip(python, "--no-deps", "--target", folder, wheel, *missing)
    for order, text in (("before", OURS + THEIRS[name]), ("after", THEIRS[name] + OURS)):
        fresh.run(python, "-c", text + BOTH, PYTHONPATH=str(folder), TF_CPP_MIN_LOG_LEVEL="2")
        print(f"gradus {order} {name}: both compile and compute")


def installed_peers():
    for name, peer in (("tensorflow", "tf"), ("jax", "jax")):
        subprocess.run([ROOT / "tools/install_peer.sh", peer], check=True)
        yield f"{name}={ROOT}/.venv-{peer}/bin/python"
    if (ROOT / ".venv-torch/installed").exists():
        yield f"torch={ROOT}/.venv-torch/bin/python"


def main(folder, scratch, *peers):
    for name, python in (peer.split("=") for peer in peers or installed_peers()):
        try_beside(fresh.wheel_for(python, folder), pathlib.Path(scratch).resolve(), name, python)


if __name__ == "__main__":
    main(*sys.argv[1:])
