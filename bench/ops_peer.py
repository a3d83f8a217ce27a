"""What ops_torch.py and ops_jax.py share: inputs with the bits of bench/ops/inputs.cpp, timing, and answers to requests.

A request is a row of `gradus_bench ops` with the value of n, value or gradient, a mode and seconds; the answer has the time
and summaries of the results, or an error. One JSON line each."""
import json
import re
import sys
import time

import numpy as np

NAMES = "abcdeghijk"  # of inputs in the rows' expressions; n is the size
MIX = [np.uint64(v) for v in (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)]
SAMPLE_S, SLOW_S = 50e-6, 0.2


def shares(count, place):
    """24 bits of splitmix64 for each element: in [0, 1)."""
    with np.errstate(over="ignore"):
        z = np.arange(count, dtype=np.uint64) * MIX[0] + np.uint64(place + 1) * MIX[1]
        z = (z ^ (z >> np.uint64(30))) * MIX[2]
        z = (z ^ (z >> np.uint64(27))) * MIX[3]
        return ((z ^ (z >> np.uint64(31))) >> np.uint64(40)).astype(np.float64) * 2.0**-24


def made_input(text, n, place, index):
    """The array that an input's text describes; `index`: the dtype that the peer takes for indices."""
    kind, extents, bounds = re.fullmatch(r"(\w+)\[([^\]]*)\](.*)", text).groups()
    shape = [n if d == "n" else int(d) for d in extents.split(",") if d]
    low, high = map(float, bounds.split()) if bounds.strip() else (-1.0, 1.0)
    values = low + shares(int(np.prod(shape)), place) * (high - low)
    if kind in ("i32", "index", "u8", "bool"):
        dtype = {"i32": np.int32, "index": index, "u8": np.uint8, "bool": np.bool_}[kind]
        return values.astype(np.int32).astype(dtype).reshape(shape)
    values = values.astype(np.float32).reshape(shape)
    if kind == "sorted":
        values = np.sort(values, axis=-1)
    if kind == "spd":
        lower = np.tril((values + np.swapaxes(values, -1, -2)) / np.float32(2), -1)
        values = lower + np.swapaxes(lower, -1, -2) + np.float32(shape[-1]) * np.eye(shape[-1], dtype=np.float32)
    return values


def times_of(call, seconds):
    """Median and least seconds of a call, after as much time without a look at the clock."""
    clock = time.perf_counter
    calls, last, start = 0, 0.0, clock()
    while calls < 3 or clock() - start < seconds:
        before = clock()
        call()
        last = clock() - before
        if calls > 0 and last > SLOW_S:
            break
        calls += 1
    repeats = max(1, int(SAMPLE_S / max(last, 1e-8)))
    samples, start = [], clock()
    while not samples or (last < SLOW_S and len(samples) < 3) or clock() - start < seconds:
        before = clock()
        for _ in range(repeats):
            call()
        samples.append((clock() - before) / repeats)
    samples.sort()
    return samples[len(samples) // 2], samples[0]


def summary_of(array):
    """As summary_of in bench/ops/serve.cpp; a complex number is two."""
    array = np.asarray(array)
    if np.iscomplexobj(array):
        array = np.stack([array.real, array.imag], -1)
    wide = array.astype(np.float64).ravel()
    count = max(1, wide.size)
    return [wide.size, wide.sum() / count, float(np.sqrt((wide * wide).sum() / count)),
            float(np.abs(wide).max(initial=0))]


def listed(results):
    return list(results) if isinstance(results, (tuple, list)) else [results]


def formula(expression, n, names, scope):
    """The row's expression as a function of its inputs, which gives a list."""
    function = eval(f"lambda {', '.join(names)}: {expression}", scope | {"n": n})  # of our own rows
    return lambda *inputs: listed(function(*inputs))


class Steps:
    """The steps of the row and size that were asked for last, ready to run: a later round compiles nothing again."""

    def __init__(self, peer):
        self.peer, self.key, self.arrays, self.steps = peer, None, [], {}

    def step(self, request):
        row, n = request["row"], request["n"]
        if self.key != (row["name"], n):
            self.steps, self.key = {}, (row["name"], n)
            self.arrays = [made_input(text, n, place, self.peer.index) for place, text in enumerate(row["inputs"])]
        way = request["what"], request["mode"]
        if way not in self.steps:
            self.steps[way] = made_step(request, self.peer, self.arrays)
        return self.steps[way]


def made_step(request, peer, arrays):
    row, n = request["row"], request["n"]
    call = formula(row[peer.name], n, NAMES[:len(arrays)], peer.scope)
    if request["what"] == "gradient":
        kinds = [text.startswith("f32") for text in row["inputs"]]
        sources = row["gradients"] if row["gradients"] >= 0 else (kinds + [False]).index(False)
        shape = peer.shape_of(call, arrays)
        cotangent = made_input("f32[" + ",".join(map(str, shape)) + "]", n, len(arrays), peer.index)
        return peer.gradient(call, arrays, sources, cotangent, request["mode"])
    return peer.value(call, arrays, request["mode"])


def answer_to(request, steps):
    step = steps.step(request)
    median, least = times_of(step, request["seconds"])
    return {"median_us": median * 1e6, "min_us": least * 1e6,
            "values": [summary_of(steps.peer.array(each)) for each in step()]}


def serve(peer):
    """Answers requests until there are no more. `peer`: ops_torch.py and ops_jax.py say what it offers."""
    steps = Steps(peer)
    for line in sys.stdin:
        try:
            answer = answer_to(json.loads(line), steps)
        except Exception as problem:  # of any kind: it is the row's, and the next row may be right
            answer = {"error": f"{type(problem).__name__}: {problem}"[:400]}
        print(json.dumps(answer), flush=True)
