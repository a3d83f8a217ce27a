"""Makes values.txt: decompositions of small matrices and gradients of sums of their elements times cos(1), cos(2), ...

    python make_values.py

Needs JAX, NumPy and SciPy. Values are NumPy's and SciPy's, gradients JAX's, in float64. Results whose signs are free are
products in which they drop out; those of qr are LAPACK's."""
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg

jax.config.update("jax_enable_x64", True)
lines = []


def write(kind, x):
    x = np.atleast_2d(np.asarray(x, dtype=np.float64))
    numbers = " ".join(repr(float(each)) for each in x.ravel())
    lines.append(f"{kind} {x.shape[0]} {x.shape[1]} {numbers}")


def case(name, x, value, differentiable=None):
    """value(x) by NumPy or SciPy; differentiable: the same in JAX."""
    lines.append(f"case {name}")
    write("in", x)
    write("out", value(x))
    if differentiable is not None:
        loss = lambda a: jnp.sum(jnp.ravel(differentiable(a)) * jnp.cos(jnp.arange(value(x).size) + 1.0))
        write("grad", jax.grad(loss)(jnp.asarray(x)))


def wave(m, n, phase=0.0):
    return np.sin(np.arange(m * n).reshape(m, n) ** 1.5 + phase) + np.eye(m, n)


def hilbert(n):
    return 1 / (1.0 + np.arange(n)[:, None] + np.arange(n)[None, :])


def graded(n):
    return wave(n, n) * 10.0 ** -(2.0 * np.arange(n))[:, None]


def symmetric(n):
    return wave(n, n) + wave(n, n).T


def by_svd(np_):
    def value(x):
        u, s, vt = np_.linalg.svd(x, full_matrices=False)
        return (u * np_.cos(s)) @ vt
    return value


def by_eigh(np_):
    def value(x):
        e, v = np_.linalg.eigh((x + x.T) / 2)
        return (v * np_.cos(e)) @ v.T
    return value


def lu(x):
    factors, pivots = scipy.linalg.lu_factor(x)
    order = np.arange(len(x))
    for i, pivot in enumerate(pivots):
        order[[i, pivot]] = order[[pivot, i]]
    return np.concatenate([factors, order[None].astype(float)])


def lu_in_jax(x):
    factors, _, order = jax.lax.linalg.lu(x)
    return jnp.concatenate([factors, order[None].astype(x.dtype)])


def qr(np_):
    def value(x):
        q, r = np_.linalg.qr(x)
        return np_.concatenate([q.T, r], axis=1)
    return value


matrices = {"square": wave(5, 5), "tall": wave(6, 4), "wide": wave(3, 5), "hilbert": hilbert(6), "graded": graded(5)}
deficient = wave(6, 2) @ wave(2, 4, 1)
for of, x in matrices.items():
    smooth = of not in ("hilbert", "graded")
    case(f"svdvals of {of}", x, lambda a: np.linalg.svd(a, compute_uv=False),
         (lambda a: jnp.linalg.svd(a, compute_uv=False)) if smooth else None)
    case(f"svd of {of}", x, by_svd(np), by_svd(jnp) if smooth else None)
    case(f"qr of {of}", x, qr(np), qr(jnp) if smooth and of != "wide" else None)
    case(f"matrix_rank of {of}", x, np.linalg.matrix_rank)
    if smooth:
        case(f"pinv of {of}", x, np.linalg.pinv, jnp.linalg.pinv)
    if x.shape[0] == x.shape[1]:
        case(f"lu of {of}", x, lu, lu_in_jax if smooth else None)
        case(f"matrix_exp of {of}", x, scipy.linalg.expm, jax.scipy.linalg.expm)
case("matrix_rank of deficient", deficient, np.linalg.matrix_rank)
case("pinv of deficient", deficient, np.linalg.pinv, None)
case("lstsq of deficient", deficient, lambda a: np.linalg.lstsq(a, wave(6, 3, 2), rcond=None)[0])
case("lstsq of tall", wave(6, 4), lambda a: np.linalg.lstsq(a, wave(6, 3, 2), rcond=None)[0],
     lambda a: jnp.linalg.lstsq(a, jnp.asarray(wave(6, 3, 2)))[0])
case("lstsq of wide", wave(3, 5), lambda a: np.linalg.lstsq(a, wave(3, 3, 2), rcond=None)[0])
case("eigvalsh of symmetric", symmetric(5), np.linalg.eigvalsh)
case("eigvalsh of hilbert", hilbert(6), np.linalg.eigvalsh)
case("eigh of symmetric", symmetric(5), by_eigh(np), by_eigh(jnp))
case("matrix_exp of jordan", np.eye(5) * -2 + np.eye(5, k=1) * 30, scipy.linalg.expm, jax.scipy.linalg.expm)
case("matrix_exp of large", wave(4, 4) * 12, scipy.linalg.expm, jax.scipy.linalg.expm)
case("matrix_exp of small", wave(4, 4) * 1e-3, scipy.linalg.expm, jax.scipy.linalg.expm)

pathlib.Path(__file__).with_name("values.txt").write_text("\n".join(lines) + "\n")
