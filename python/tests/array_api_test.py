"""The functions of the Python array API standard (2025.12): a row for each says how it is written here, and NumPy, which has
them by the standard's names, gives the values; or it says why there is none."""
import unittest

import gradus
import numpy as np
from gradus import ops

# name | arguments | here, if it is not ops.name(arguments) | what is compared of a result `r`, if it is not all of it
ROWS = """
asarray | [[1.0, 2.0]] | gradus.constant([[1.0, 2.0]])
arange | 2, 9, 3 | ops.range(2, 9, 3)
eye | 3
from_dlpack | n | gradus.from_dlpack(n)
full | (2, 3), 7.0 | ops.full([2, 3], 7.0)
full_like | x, 7.0 | ops.ones_like(x) * 7.0
linspace | 0.0, 1.0, 5 | ops.linspace(0.0, 1.0, 5)
meshgrid | v, w | ops.meshgrid([v, w])
ones | (2, 3) | ops.ones([2, 3])
ones_like | x
tril | m
triu | m
zeros | (2, 3) | ops.zeros([2, 3])
zeros_like | x
astype | x, np.int32 | ops.cast(x, gradus.int32)
broadcast_to | v, (2, 4) | ops.broadcast_to(v, [2, 4])
abs | x
acos | u
acosh | p + 1.0
add | x, y
asin | u
asinh | x
atan | x
atan2 | x, y
atanh | u
bitwise_and | i, j
bitwise_or | i, j
bitwise_xor | i, j
bitwise_invert | i | ops.invert(i)
bitwise_left_shift | i, k | ops.left_shift(i, k)
bitwise_right_shift | i, k | ops.right_shift(i, k)
ceil | x
clip | x, -0.5, 0.5 | ops.clip_by_value(x, -0.5, 0.5)
copysign | x, y
cos | x
cosh | x
divide | x, p
equal | i, j
exp | x
expm1 | x
floor | x
floor_divide | x, p
greater | x, y
greater_equal | i, j
hypot | x, y
isfinite | h | ops.is_finite(h)
isinf | h | ops.is_inf(h)
isnan | h | ops.is_nan(h)
less | x, y
less_equal | i, j
log | p
log1p | p
log2 | p
log10 | p
logaddexp | x, y
logical_and | b, c
logical_not | b
logical_or | b, c
logical_xor | b, c
maximum | x, y
minimum | x, y
multiply | x, y
negative | x
nextafter | x, y
not_equal | i, j
positive | x | +x
pow | p, y
reciprocal | p
remainder | x, p | ops.floormod(x, p)
round | x * 4.0
sign | x
signbit | x | ops.copysign(ops.ones_like(x), x) < 0.0
sin | x
sinh | x
square | x
sqrt | p
subtract | x, y
tan | x
tanh | x
trunc | x * 4.0
take | x, k, axis=1 | ops.gather(x, k, axis=1)
take_along_axis | x, k2, axis=1
matmul | m, s
tensordot | m, s, axes=1
vecdot | x, y | (x * y).sum(axis=-1)
matrix_transpose | m
concat | [x, y], axis=1
expand_dims | x, axis=1
flip | x, axis=[0, 1] | ops.flip(x, [0, 1])
moveaxis | t, 0, 2
permute_dims | t, (2, 0, 1) | ops.transpose(t, [2, 0, 1])
repeat | x, 3, axis=1
reshape | x, (4, 3) | ops.reshape(x, [4, 3])
roll | x, 2, axis=1
squeeze | x[:, :1], axis=1
stack | [x, y], axis=1
tile | x, (2, 3) | ops.tile(x, [2, 3])
unstack | x, axis=1
argmax | x, axis=1
argmin | x, axis=1
count_nonzero | i, axis=1
nonzero | v > 0.0 | [ops.nonzero(v > 0.0)] | np.asarray(r).reshape(-1)
searchsorted | w, v
where | b, x, y
unique_values | k | ops.unique(k).values | np.sort(r)
unique_counts | k | ops.unique_with_counts(k)[::2] | sorted(zip(np.asarray(r[0]).tolist(), np.asarray(r[1]).tolist()))
unique_inverse | k | ops.unique(k) | np.asarray(r[0])[np.asarray(r[1])]
argsort | v
sort | x, axis=1
cumulative_sum | x, axis=1 | ops.cumsum(x, axis=1)
cumulative_prod | x, axis=1 | ops.cumprod(x, axis=1)
max | x, axis=1 | x.max(axis=1)
mean | x, axis=1 | x.mean(axis=1)
min | x, axis=1 | x.min(axis=1)
prod | x, axis=1 | ops.reduce_prod(x, axis=1)
std | x, axis=1 | ops.reduce_std(x, axis=1)
sum | x, axis=1 | x.sum(axis=1)
var | x, axis=1 | ops.reduce_variance(x, axis=1)
all | b, axis=1 | ops.reduce_all(b, axis=1)
any | b, axis=1 | ops.reduce_any(b, axis=1)
diff | v
linalg.cholesky | s
linalg.cross | x[:, :3], y[:, :3]
linalg.det | s
linalg.diagonal | m | ops.diag_part(m)
linalg.eigh | s | | np.asarray(r[0])
linalg.eigvalsh | s
linalg.inv | s
linalg.matmul | m, s
linalg.matrix_norm | m | ops.norm(m)
linalg.matrix_rank | m
linalg.matrix_transpose | m
linalg.outer | v, w
linalg.pinv | m
linalg.qr | m | | abs(np.asarray(r[1]))
linalg.slogdet | s
linalg.solve | s, m
linalg.svd | m | | np.asarray(r[1] if len(np.shape(r[1])) == 1 else r[0])
linalg.svdvals | m
linalg.tensordot | m, s, axes=1
linalg.trace | m
linalg.vecdot | x, y | (x * y).sum(axis=-1)
linalg.vector_norm | v | ops.norm(v)
fft.fftshift | v
fft.ifftshift | v
"""

COMPLEX = "there are no complex dtypes; ops.fft and its kin give and take real and imaginary parts as a last dimension of 2"
DTYPES = "NumPy answers it: the dtype of a tensor is one of NumPy's by np.dtype(x.dtype)"
AXES = "a transform of one dimension after the other"
NONE = {
    "empty": "memory that holds anything: zeros", "empty_like": "memory that holds anything: zeros_like",
    "broadcast_arrays": "ops that take several tensors broadcast them; broadcast_to does it to one",
    "broadcast_shapes": "NumPy answers it: np.broadcast_shapes(x.shape, y.shape)",
    "can_cast": DTYPES, "finfo": DTYPES, "isdtype": DTYPES, "iinfo": DTYPES, "result_type": DTYPES,
    "conj": COMPLEX, "imag": COMPLEX, "real": COMPLEX,
    "isin": "a lookup is a table's: text.lookup and tf.lookup; of few values (x[..., None] == values).any(-1)",
    "unique_all": "unique_with_counts gives values, places and counts",
    "__array_namespace_info__": "gradus.ops is no namespace of the standard: its names and defaults are TensorFlow's and NumPy's",
    "linalg.matrix_power": "a product of matrices, written out",
    "fft.fft": COMPLEX, "fft.ifft": COMPLEX, "fft.rfft": COMPLEX, "fft.irfft": COMPLEX, "fft.hfft": COMPLEX, "fft.ihfft": COMPLEX,
    "fft.fftn": AXES, "fft.ifftn": AXES, "fft.rfftn": AXES, "fft.irfftn": AXES,
    "fft.fftfreq": "numbers of the host: np.fft.fftfreq", "fft.rfftfreq": "numbers of the host: np.fft.rfftfreq",
}
FUNCTIONS = 173  # of the standard, those of linalg and fft counted under their own names


def arrays():
    random = np.random.default_rng(0)
    normal = random.standard_normal
    m = normal((4, 4)).astype(np.float32)
    found = {"x": normal((3, 4)), "y": normal((3, 4)), "u": random.uniform(0.1, 0.9, (3, 4)), "p": random.uniform(0.5, 2, (3, 4)),
             "t": normal((2, 3, 4)), "v": np.array([0.5, -1.5, 2.5, 0.0]), "w": np.array([-2.0, -1.0, 0.5, 3.0]),
             "h": np.array([1.0, np.inf, -np.inf, np.nan])}
    return {**{name: a.astype(np.float32) for name, a in found.items()}, "m": m, "s": (m @ m.T + 4 * np.eye(4)).astype(np.float32),
            "i": random.integers(0, 100, (3, 4)), "j": random.integers(0, 100, (3, 4)), "k": np.array([2, 0, 3, 2]),
            "k2": random.integers(0, 4, (3, 4)), "b": random.random((3, 4)) > 0.5, "c": random.random((3, 4)) > 0.5,
            "n": np.arange(6.0)}


def rows():
    for line in ROWS.strip().split("\n"):
        name, arguments, *rest = (part.strip() for part in line.split("|"))
        here, view = (rest + ["", ""])[:2]
        yield name, f"np.{name}({arguments})", here or f"ops.{name.split('.')[-1]}({arguments})", view or "r"


def leaves(result):
    if isinstance(result, (list, tuple)):
        return [leaf for part in result for leaf in leaves(part)]
    return [np.asarray(result)]


class ArrayApi(unittest.TestCase):
    def test_a_row_for_each_function(self):
        names = [name for name, *_ in rows()] + list(NONE)
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(len(names), FUNCTIONS)

    def test_values_are_those_of_numpy(self):
        theirs = arrays()
        ours = {name: a if name == "n" else gradus.constant(a) for name, a in theirs.items()}
        for name, standard, here, view in rows():
            with self.subTest(name, here=here):
                want = eval(view, {"np": np, "r": eval(standard, {"np": np, **theirs})})
                found = eval(view, {"np": np, "r": eval(here, {"np": np, "ops": ops, "gradus": gradus, **ours})})
                self.assertEqual(len(leaves(found)), len(leaves(want)))
                for a, b in zip(leaves(found), leaves(want)):
                    self.assertEqual(a.shape, b.shape)
                    np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)

    def test_reasons_are_given(self):
        for name, reason in NONE.items():
            self.assertGreater(len(reason.split()), 3, name)


if __name__ == "__main__":
    unittest.main()
