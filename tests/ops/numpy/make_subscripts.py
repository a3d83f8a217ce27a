"""NumPy's readings of subscripts: writes subscripts.txt, and prints the rows of ../subscript_rows.h. Needs NumPy alone.

    python3 make_subscripts.py

Each line of subscripts.txt is a subscript, the shape of x[subscript], and its elements, where the elements of x, of
shape (3, 4, 5), are their own places 0 to 59.
"""
import pathlib


import numpy as np

HERE = pathlib.Path(__file__).parent
NAMES = {
    "i": np.array([0, 2]), "j": np.array([1, -1]), "k": np.array([[0, 2], [1, 1]]), "c": np.array(1),
    "n": np.array([-1, -3, 2, 0]), "u": np.array([2, 0], np.uint8), "col": np.array([[0], [2]]),
    "none": np.zeros([0], np.int64), "m": np.array([True, False, True]),
    "m1": np.array([False, True, True, False]), "m2": np.array([True, False, False, True, False]),
    "off": np.array([False, False, False]),
}
NAMES["m01"] = np.arange(12).reshape(3, 4) % 7 == 1
NAMES["m12"] = np.arange(20).reshape(4, 5) % 9 == 2
NAMES["m012"] = np.arange(60).reshape(3, 4, 5) % 11 == 3

SLICES = [":", "1:", ":2", "-2:", ":-1", "1:3", "::2", "1::2", "::-1", "2::-1", ":1:-1", "3:0:-2", "-1:-3:-1", "::-2",
          "1:100", "-100:2", "5:", "2:1", "0:0", "100:1:-1", ":-100:-1"]
SUBSCRIPTS = [*SLICES, *(f":, {s}" for s in SLICES[1:]), *(f"..., {s}" for s in SLICES[1:12])]
SUBSCRIPTS += """
0 | -1 | 2, 3 | -3, -4, -5 | 1, 2, 3 | :, 2 | :, -1, 1:3 | ..., 0 | 0, ... | 0, ..., -1 | ... | ..., 1, : | :, :, -2
None | None, ... | ..., None | :, None | :, None, 1 | None, 0, None | 1, None, ::2 | 0, :, None, -1 | None, :, None, 2:0:-1
::2, 1:3, ::-1 | 1:, ::-1, 2 | 2:0:-1, 3, ::3 | None, ::2, None, ..., None | 0, None, 1, None, 2, None
i | k | c | n | u | none | j, i | i, : | :, i | ..., i | :, k | ..., k | i, 1 | 1, i | i, :, 1 | 1, :, i | 0, i, : | :, 0, i
:, i, 0 | i, j | i, j, i | :, i, j | i, :, j | i, ..., j | :, i, ..., j | i, None, j | i, 1, j | 1, i, j | i, j, 2 | i, 2:, 0
k, i | i, k | k, :, k | col, i | :, col, i | col, :, i | c, i | i, c | c, :, i | :, c | i, None | None, i | None, :, i
i, None, :, 1 | ::2, i | ::-1, i, 1: | 1:, :, i | 1:, i, j | i, ::-1, j | n, 1:3 | :, n | n, n | n, :, n | none, i[:1] | :, none
col, None, i | i, None, None, 2 | ..., i, None, j | None, i, None, :, j | i, 1:, None | k, 0 | 0, k | 0, :, k | k, ..., -1 | u, u
0, k, None | i, ::2, ::-1 | ::2, :, i | col, 1:3, i
m | m, 1 | m, : | m, ..., 1 | :, m1 | m, m1 | m, i | i, m1 | :, m1, i | m, :, i | m, :, m2 | ..., m2 | m01 | m01, 0 | m01, i[:1]
m01, :2 | :, m12 | 0, m12 | ::2, m12 | m012 | off | off, 1: | None, m | m, None | 1, m1 | 1, :, m2 | m, ::-1 | c, m12 | m, 1:3, 0
m[::-1], None, :, 2 | m, m12.any(1)
"""[1:-1].replace("\n", " | ").split(" | ")


def in_cpp(part):
    """One subscript as the C++ writes it."""
    if ":" in part and "[" not in part:
        numbers = part.split(":")
        begin, stop = numbers[:2]
        step = numbers[2] if len(numbers) > 2 else ""
        if step:
            return f"slice({begin or '{}'}, {stop or '{}'}, {step})"
        if not begin and not stop:
            return "all"
        return f"slice({begin}, {stop or 'end'})" if begin else f"slice({stop})"
    return {"None": "newaxis", "...": "ellipsis", "i[:1]": "t.i(slice(1))", "m[::-1]": "t.m(slice({}, {}, -1))",
            "m12.any(1)": "reduce_any(t.m12, {.axis = {1}})"}.get(part) or (f"t.{part}" if part[0].isalpha() else part)


def main():
    x = np.arange(60).reshape(3, 4, 5)
    lines, rows = [], []
    for subscript in dict.fromkeys(SUBSCRIPTS):
        y = np.asarray(eval(f"x[{subscript}]", {"x": x, **NAMES}))
        assert y.ndim <= 8
        lines.append(f"{subscript} | {' '.join(map(str, y.shape))} | {' '.join(map(str, y.reshape(-1)))}")
        parts = ", ".join(in_cpp(part) for part in subscript.split(", "))
        rows.append(f'    {{"{subscript}", {{{parts}}}}},')
    (HERE / "subscripts.txt").write_text("\n".join(lines) + "\n")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
