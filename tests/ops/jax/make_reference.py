#!/usr/bin/env python3
"""Makes reference.safetensors: values, gradients and second derivatives of the op rows by JAX in float64.

    GRADUS_WRITE_JAX_CASES=cases.safetensors build/release/bin/ops_test --gtest_filter='*CasesForTheScript*'
    make_reference.py cases.safetensors [row ...|all]        (in an environment with jax and numpy)

Results that are stored for the same arrays are kept, but of the rows named, whose functions have changed.
A row's function in JAX stands in a table FUNCTIONS of one of the files functions_*.py beside this one. Gradients are
those of <u, f(in0, in1 ...)>; second derivatives those of the sum of <gradient k, v k>, by all operands that have them.
"""
import importlib
import json
import pathlib
import struct
import sys

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_disable_most_optimizations", True)
HERE = pathlib.Path(__file__).resolve().parent


def read(path):
    """{row: {number: {array's name: array}}} of the cases."""
    data = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    cases = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        if name == "__metadata__":
            continue
        row, number, array = name.rsplit("|", 2)
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        values = np.frombuffer(data[begin:end], np.float64).reshape(entry["shape"])
        cases.setdefault(row, {}).setdefault(number, {})[array] = values
    return cases


def write(path, arrays):
    header, blobs, offset = {}, [], 0
    for name in sorted(arrays):
        blob = np.ascontiguousarray(arrays[name], np.float64).tobytes()
        header[name] = {"dtype": "F64", "shape": list(np.shape(arrays[name])), "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def functions():
    table = {}
    for file in sorted(HERE.glob("functions_*.py")):
        table.update(importlib.import_module(file.stem).FUNCTIONS)
    return table


def results(function, case):
    """What is to be stored of one case: the case and y, d0, d1 ..., h0, h1 ..."""
    inputs = [jnp.asarray(case[f"in{k}"]) for k in range(sum(name.startswith("in") for name in case))]
    sources = [k for k in range(len(inputs)) if f"v{k}" in case]
    if not sources or "u" not in case:
        arrays = {name: array for name, array in case.items() if name != "u" and name[0] != "v"}
        return {**arrays, "y": function(*inputs)}

    def target(*at):
        every = list(inputs)
        for k, x in zip(sources, at):
            every[k] = x
        y = function(*every)
        return jnp.sum(case["u"] * y), y

    def along(*at):
        slopes, y = jax.grad(target, where, has_aux=True)(*at)
        return sum(jnp.sum(d * case[f"v{k}"]) for k, d in zip(sources, slopes)), (slopes, y)

    where = tuple(range(len(sources)))
    derivatives = jax.grad(along, where, has_aux=True)
    at = [inputs[k] for k in sources]
    try:  # one program for the case: op by op JAX compiles every op for every shape, which takes ten times as long
        second, (first, y) = jax.jit(derivatives)(*at)
    except jax.errors.ConcretizationTypeError:  # the function looks at values
        second, (first, y) = derivatives(*at)
    out = {**case, "y": y}
    for k, d, h in zip(sources, first, second):
        out[f"d{k}"], out[f"h{k}"] = d, h
    return out


def is_stored(case, stored):
    """Whether there are results, of these very arrays."""
    arrays = [name for name in case if name in stored or name.startswith("in")]
    return "y" in stored and all(
        name in stored and np.array_equal(case[name], stored[name], equal_nan=True) for name in arrays)


def main():
    file, again = HERE / "reference.safetensors", sys.argv[2:]
    before = read(file) if file.exists() else {}
    table, stored = functions(), {}
    reasons = {line.split(": ")[0] for line in (HERE / "without_counterpart.txt").read_text().splitlines()}
    for row, cases in read(sys.argv[1]).items():
        if row in reasons:
            continue
        if row not in table:
            print(f"no function: {row}")
            continue
        for number, case in cases.items():
            old = before.get(row, {}).get(number, {})
            keep = is_stored(case, old) and row not in again and again != ["all"]
            for name, array in (old if keep else results(table[row], case)).items():
                stored[f"{row}|{number}|{name}"] = array
    write(file, stored)


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    main()
