#!/usr/bin/env python3
"""Makes specials.safetensors: values and gradients of the op rows by JAX in float64 at special numbers.

    GRADUS_WRITE_JAX_SPECIALS=cases.safetensors build/release/bin/ops_test --gtest_filter='*AtSpecials.CasesForTheScript*'
    make_specials.py cases.safetensors        (in an environment with jax and numpy)

The functions are those of make_reference.py. Gradients are those of the sum of all elements.
"""
import sys

import jax
import jax.numpy as jnp
import numpy as np

from make_reference import HERE, functions, read, write


def results(function, case):
    """The case and y, d0, d1 ..."""
    inputs = [jnp.asarray(case[f"in{k}"]) for k in range(sum(name.startswith("in") for name in case))]
    sources = [k for k in range(len(inputs)) if f"v{k}" in case]
    out = {name: array for name, array in case.items() if name[0] != "v"}
    y = function(*inputs)
    out["y"] = y
    if not sources or not jnp.issubdtype(jnp.asarray(y).dtype, jnp.floating):
        return out

    def total(*at):
        every = list(inputs)
        for k, x in zip(sources, at):
            every[k] = x
        return jnp.sum(function(*every))

    gradients = jax.grad(total, tuple(range(len(sources))))(*[inputs[k] for k in sources])
    for k, gradient in zip(sources, gradients):
        out[f"d{k}"] = gradient
    return out


def main():
    table, stored = functions(), {}
    for row, cases in read(sys.argv[1]).items():
        if row not in table:
            print(f"no function: {row}")
            continue
        for number, case in cases.items():
            try:
                every = results(table[row], case)
            except Exception as error:  # what JAX cannot differentiate
                print(f"{row}: {type(error).__name__}")
                break
            for name, array in every.items():
                stored[f"{row}|{number}|{name}"] = np.asarray(array, np.float64)
    write(HERE / "specials.safetensors", stored)


if __name__ == "__main__":
    main()
