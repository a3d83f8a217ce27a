"""Writes ../scipy_values.h: minima, costs and numbers of evaluations of scipy.optimize, on the problems that
../problems.h has in C++. Gradients and Jacobians are JAX's, in float64.

    python3 make_reference.py && clang-format-19 -i ../scipy_values.h
"""
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from scipy.optimize import Bounds, least_squares, minimize

jax.config.update("jax_enable_x64", True)


def rosenbrock(x):
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def alternating(n):
    return np.where(np.arange(n) % 2 == 0, -1.2, 1.0)


rows, columns = np.arange(200.0)[:, None], np.arange(10.0)[None, :]
features = np.sin(1.7 * rows + 2.3 * columns + 0.1 * rows * columns)
labels = (features @ np.cos(np.arange(10.0)) + 0.5 * np.sin(5 * rows[:, 0]) > 0).astype(float)


def logistic(w):
    z = features @ w[:10] + w[10]
    return jnp.mean(jnp.logaddexp(0, z) - labels * z) + 0.005 * jnp.sum(w ** 2)


inputs = np.linspace(0, 10, 60)
outputs = np.sin(inputs) + 0.3 * np.cos(3 * inputs) + 0.1 * np.sin(37 * np.arange(60.0) ** 2)


def process(p):
    kernel = jnp.exp(2 * p[0]) * jnp.exp(-0.5 * ((inputs[:, None] - inputs) / jnp.exp(p[1])) ** 2)
    factor = jnp.linalg.cholesky(kernel + jnp.exp(2 * p[2]) * jnp.eye(60))
    half = jax.scipy.linalg.solve_triangular(factor, outputs, lower=True)
    return 0.5 * half @ half + jnp.sum(jnp.log(jnp.diag(factor))) + 30 * jnp.log(2 * jnp.pi)


places = np.linspace(0, 1, 21)


def network(p, x):
    return p[20:30] @ jnp.tanh(p[:10] * x + p[10:20]) + p[30]


def pinn(p):  # u'' = -pi^2 sin(pi x), u(0) = u(1) = 0
    second = jax.vmap(jax.grad(jax.grad(lambda x: network(p, x))))(places)
    inside = jnp.mean((second + jnp.pi ** 2 * jnp.sin(jnp.pi * places)) ** 2)
    return inside + 100 * (network(p, 0.0) ** 2 + network(p, 1.0) ** 2)


minima = [
    # name, function, x0, options of methods (empty: all methods)
    ("rosenbrock_2", rosenbrock, alternating(2), {}),
    ("rosenbrock_20", rosenbrock, alternating(20), {}),
    ("logistic", logistic, np.zeros(11), {}),
    ("process", process, np.array([0.0, 0.0, -1.0]), {}),
    ("pinn", pinn, np.sin(1.0 + 3 * np.arange(31.0)), {"L-BFGS-B": {}, "BFGS": {"gtol": 1e-2}}),
]
bounded = [
    ("rosenbrock_2", rosenbrock, alternating(2), (np.array([-1.5, -0.5]), np.array([0.5, 2.0]))),
    ("rosenbrock_20", rosenbrock, alternating(20), (np.full(20, -2.0), np.where(np.arange(20) % 3 == 0, 0.7, 1.5))),
    ("logistic", logistic, np.zeros(11), (np.full(11, -0.5), np.full(11, np.inf))),
]

times = np.linspace(0, 4, 40)
decay = 2.5 * np.exp(-1.3 * times) + 0.5 + 0.02 * np.sin(40 * np.arange(40.0) ** 2)
outliers = decay + np.where(np.arange(40) % 9 == 4, 1.5, 0.0)


def curve(p):
    return p[0] * jnp.exp(-p[1] * times) + p[2] - decay


def curve_with_outliers(p):
    return p[0] * jnp.exp(-p[1] * times) + p[2] - outliers


def rosenbrock_residuals(x):
    return jnp.stack([10 * (x[1] - x[0] ** 2), 1 - x[0]])


def powell(x):  # singular at its minimum
    return jnp.stack([x[0] + 10 * x[1], jnp.sqrt(5.0) * (x[2] - x[3]), (x[1] - 2 * x[2]) ** 2,
                      jnp.sqrt(10.0) * (x[0] - x[3]) ** 2])


cameras, points = 20, 40
c, q = np.arange(float(cameras)), np.arange(float(points))
true_points = np.stack([np.sin(2.1 * q), np.cos(3.7 * q), np.sin(5.3 * q + 1)], 1)
true_cameras = np.stack([0.2 * np.sin(c), 0.6 * np.sin(0.5 * c + 1), 0.1 * np.cos(3 * c), 0.3 * np.cos(c),
                         0.3 * np.sin(2 * c), 6 + 0.5 * np.sin(3 * c)], 1)


def project(cameras_, points_):
    """By a rotation vector and a shift for each camera, and a focal length of 1: [cameras, points, 2]."""
    turn, shift = cameras_[:, None, :3], cameras_[:, None, 3:]
    angle2 = jnp.sum(turn ** 2, -1, keepdims=True) + 1e-30
    angle = jnp.sqrt(angle2)
    p = points_[None]
    cross = jnp.stack([turn[..., 1] * p[..., 2] - turn[..., 2] * p[..., 1],
                       turn[..., 2] * p[..., 0] - turn[..., 0] * p[..., 2],
                       turn[..., 0] * p[..., 1] - turn[..., 1] * p[..., 0]], -1)
    inner = jnp.sum(turn * p, -1, keepdims=True)
    turned = p * jnp.cos(angle) + cross * (jnp.sin(angle) / angle) + turn * inner * ((1 - jnp.cos(angle)) / angle2)
    at = turned + shift
    return at[..., :2] / at[..., 2:]


seen = np.array(project(true_cameras, true_points)) + 1e-3 * np.sin(
    7.0 * np.arange(cameras * points * 2.0) ** 2).reshape(cameras, points, 2)
start = np.concatenate([(true_cameras + 0.05 * np.sin(11 * np.arange(120.0)).reshape(20, 6)).ravel(),
                        (true_points + 0.05 * np.sin(13 * np.arange(120.0)).reshape(40, 3)).ravel()])


def bundle(x):
    return (project(x[:120].reshape(20, 6), x[120:].reshape(40, 3)) - seen).ravel()


infinity = np.inf
fits = [
    # name, residuals, x0, options
    ("curve", curve, [1.0, 1.0, 0.0], {}),
    ("curve", curve, [1.0, 1.0, 0.0], {"method": "dogbox"}),
    ("curve", curve, [1.0, 1.0, 0.0], {"method": "lm"}),
    ("curve", curve, [1.0, 1.0, 0.0], {"bounds": ([0.0, 0.0, 0.52], [2.3, infinity, 1.0]), "x0": [1.0, 1.0, 0.6]}),
    ("curve", curve, [1.0, 1.0, 0.0],
     {"bounds": ([0.0, 0.0, 0.52], [2.3, infinity, 1.0]), "x0": [1.0, 1.0, 0.6], "method": "dogbox"}),
    ("curve", curve, [1.0, 1.0, 0.0], {"x_scale": "jac"}),
    ("outliers", curve_with_outliers, [1.0, 1.0, 0.0], {"loss": "soft_l1", "f_scale": 0.1}),
    ("outliers", curve_with_outliers, [1.0, 1.0, 0.0], {"loss": "huber", "f_scale": 0.1}),
    ("outliers", curve_with_outliers, [1.0, 1.0, 0.0], {"loss": "cauchy", "f_scale": 0.1}),
    ("outliers", curve_with_outliers, [1.0, 1.0, 0.0], {"loss": "arctan", "f_scale": 0.1}),
    ("outliers", curve_with_outliers, [1.0, 1.0, 0.0], {"loss": "cauchy", "f_scale": 0.1, "method": "dogbox"}),
    ("rosenbrock", rosenbrock_residuals, [-1.2, 1.0], {}),
    ("rosenbrock", rosenbrock_residuals, [-1.2, 1.0], {"method": "dogbox"}),
    ("rosenbrock", rosenbrock_residuals, [-1.2, 1.0], {"method": "lm"}),
    ("rosenbrock", rosenbrock_residuals, [-1.2, 1.0], {"bounds": ([-infinity, 1.5], [infinity, infinity]),
                                                       "x0": [-1.2, 2.0]}),
    ("powell", powell, [3.0, -1.0, 0.0, 1.0], {}),
    ("bundle", bundle, start, {}),
    ("bundle", bundle, start, {"method": "lm"}),
]


def text(numbers):
    return "{" + ", ".join(repr(float(v)).replace("inf", "infinity") for v in np.ravel(numbers)) + "}"


def with_gradient(f):
    both = jax.jit(jax.value_and_grad(f))
    return lambda x: tuple(np.asarray(part, np.float64) for part in both(x))


def lines_of_minima():
    for name, f, x0, settings in minima:
        for method, enum in (("BFGS", "bfgs"), ("L-BFGS-B", "l_bfgs_b"), ("Newton-CG", "newton_cg")):
            if settings and method not in settings:
                continue
            product = jax.jit(lambda x, v, f=f: jax.jvp(jax.grad(f), (x,), (v,))[1])
            more = {"hessp": lambda x, v, p=product: np.asarray(p(x, v))} if method == "Newton-CG" else {}
            r = minimize(with_gradient(f), x0, jac=True, method=method, options=settings.get(method, {}), **more)
            yield name, enum, r, {}
    for name, f, x0, bounds in bounded:
        r = minimize(with_gradient(f), x0, jac=True, method="L-BFGS-B", bounds=Bounds(*bounds))
        yield name, "l_bfgs_b", r, bounds


def lines_of_fits():
    for name, f, x0, options in fits:
        given = dict(options)
        x0 = np.array(given.pop("x0", x0))
        value, jacobian = jax.jit(f), jax.jit(jax.jacfwd(f))
        r = least_squares(lambda x: np.asarray(value(x)), x0, jac=lambda x: np.asarray(jacobian(x)), **given)
        yield name, x0, given, r


def main():
    out = ["/// Minima and fits of scipy.optimize " + scipy.__version__ + ", made by reference/make_reference.py.",
           "#pragma once", '#include "tests/fitting/problems.h"', "", "namespace gradus {", "",
           "inline const std::vector<ReferenceMinimum> scipy_minima = {"]
    for name, method, r, bounds in lines_of_minima():
        print(name, method, r.fun, r.nfev, r.nit, r.message)
        low, high = bounds if len(bounds) else ([], [])
        x = r.x if name != "pinn" else []
        out.append(f'    {{"{name}", MinimizeMethod::{method}, {text(low)}, {text(high)}, {float(r.fun)!r}, {text(x)}, '
                   f"{r.nfev}, {r.nit}}},")
    out += ["};", "", "inline const std::vector<ReferenceFit> scipy_fits = {"]
    for name, x0, given, r in lines_of_fits():
        print(name, given, r.cost, r.nfev, r.njev, r.message)
        low, high = given.get("bounds", ([], []))
        x = r.x if name != "bundle" else []
        covariance = [] if name in ("powell", "bundle") or len(low) or r.jac.shape[0] <= len(x0) else (
            np.linalg.inv(r.jac.T @ r.jac) * 2 * r.cost / (r.jac.shape[0] - len(x0)))
        out.append(f'    {{"{name}", LeastSquaresMethod::{given.get("method", "trf")}, '
                   f'RobustLoss::{given.get("loss", "linear")}, {given.get("f_scale", 1.0)}, '
                   f'{"true" if given.get("x_scale") == "jac" else "false"}, {text(x0 if name != "bundle" else [])}, '
                   f"{text(low)}, {text(high)}, {float(r.cost)!r}, {text(x)}, {text(covariance)}, {r.nfev}}},")
    out += ["};", "", "}  // namespace gradus", ""]
    pathlib.Path(__file__).parent.parent.joinpath("scipy_values.h").write_text("\n".join(out))


if __name__ == "__main__":
    main()
