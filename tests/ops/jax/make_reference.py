#!/usr/bin/env python3
"""Makes reference.safetensors: values, gradients and second derivatives of the op rows by JAX in float64.

    GRADUS_WRITE_JAX_CASES=cases.safetensors build/release/bin/ops_test --gtest_filter='*CasesForTheScript*'
    make_reference.py cases.safetensors        (in an environment with jax and numpy)

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
    out = {**case, "y": function(*inputs)}
    if not sources or "u" not in case:
        return {name: array for name, array in out.items() if name != "u" and name[0] != "v"}

    def target(*at):
        every = list(inputs)
        for k, x in zip(sources, at):
            every[k] = x
        return jnp.sum(case["u"] * function(*every))

    at = [inputs[k] for k in sources]
    where = tuple(range(len(sources)))
    gradient = jax.grad(target, where)

    def along(*at):
        return sum(jnp.sum(d * case[f"v{k}"]) for k, d in zip(sources, gradient(*at)))

    for k, d, h in zip(sources, gradient(*at), jax.grad(along, where)(*at)):
        out[f"d{k}"], out[f"h{k}"] = d, h
    return out


def main():
    table, stored, missing = functions(), {}, []
    for row, cases in read(sys.argv[1]).items():
        if row not in table:
            missing.append(row)
            continue
        for number, case in cases.items():
            for name, array in results(table[row], case).items():
                stored[f"{row}|{number}|{name}"] = array
    write(HERE / "reference.safetensors", stored)
    reasons = {line.split(": ")[0] for line in (HERE / "without_counterpart.txt").read_text().splitlines()}
    for row in missing:
        if row not in reasons:
            print(f"no function: {row}")


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    main()
