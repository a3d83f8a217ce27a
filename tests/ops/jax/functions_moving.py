"""Op rows of indexing by data, orders, layout, triangles and dense linear algebra, in JAX."""
import jax
import jax.numpy as jnp


def integers(x):
    return x.astype(jnp.int32)


def batched_gather(x, i):
    return jax.vmap(lambda row, at: jnp.take(row, at, axis=1))(x, integers(i))


def batched_gather_nd(x, i):
    return jax.vmap(lambda row, at: row[at[:, 0], at[:, 1]])(x, integers(i))


def gather_elements(x, i):
    i = integers(i)
    rest = [jnp.arange(n).reshape([-1 if d == axis else 1 for d in range(i.ndim)]) for axis, n in enumerate(i.shape)]
    return x[(jnp.where(i < 0, i + x.shape[0], i), *rest[1:])]


def rows_of(kind):
    """x [rows, inner], i [places, 1], u [places, inner]; one after the other, so that the last one stays."""
    def run(x, i, u):
        for p in range(u.shape[0]):
            at = integers(i)[p, 0]
            x = x.at[at].set(kind(x[at], u[p]))
        return x
    return run


def middle_of(kind):
    """x [outer, n, inner], i [places...], u [outer, places..., inner]."""
    def run(x, i, u):
        i, u = integers(i).reshape(-1), u.reshape(x.shape[0], -1, x.shape[-1]) if x.ndim == 3 else u
        for p in range(i.shape[0]):
            x = x.at[:, i[p]].set(kind(x[:, i[p]], u[:, p]))
        return x
    return run


def scatter_nd(i, u):
    i = integers(i)
    return jnp.zeros((3, 2, 2)).at[tuple(i[..., d] for d in range(i.shape[-1]))].add(u)


def scatter_elements(x, i, u):
    i = integers(i)
    for row in range(i.shape[0]):
        for column in range(i.shape[1]):
            x = x.at[row, i[row, column]].set(u[row, column])
    return x


def put_along_axis(x, i, u):
    i = jnp.broadcast_to(integers(i), (2, 4))
    u = jnp.broadcast_to(u, (2, 4))
    for row in range(2):
        x = x.at[i[row], jnp.arange(4)].set(u[row])
    return x


def segments(reduction):
    def run(x, s):
        s = integers(s).reshape(-1)
        x = x.reshape((s.shape[0],) + x.shape[s.ndim if x.ndim == 2 else 2:])
        parts = []
        for k in range(2):
            chosen = jnp.nonzero(s == k)[0]
            parts.append(reduction(x[chosen]))
        return jnp.stack(parts)
    return run


def strided(x):
    return x[1:-1:2, ::-3][:, :, 0:5] if x.ndim == 3 else x


def masked(x):
    return x[1][..., -1][..., None]


def padding(mode):
    return lambda x: jnp.pad(x, ((1, 1), (2, 1)), mode=mode)


def reverse_sequence(x, lengths):
    lengths = integers(lengths)
    columns = []
    for b in range(x.shape[1]):
        n = int(lengths[b])
        columns.append(jnp.concatenate([x[:n, b][::-1], x[n:, b]]))
    return jnp.stack(columns, 1)


def space_to_depth(x):
    n, h, w, c = x.shape
    return x.reshape(n, h // 2, 2, w // 2, 2, c).transpose(0, 1, 3, 2, 4, 5).reshape(n, h // 2, w // 2, 4 * c)


def space_to_batch(x):
    x = jnp.pad(x, ((0, 0), (0, 1), (1, 1)) + ((0, 0),) * (x.ndim - 3))
    x = jnp.pad(x, ((0, 0), (0, x.shape[1] % 2)) + ((0, 0),) * (x.ndim - 2))
    n, h, w = x.shape[:3]
    x = x.reshape((n, h // 2, 2, w // 3, 3) + x.shape[3:])
    order = (2, 4, 0, 1, 3) + tuple(range(5, x.ndim))
    x = x.transpose(order)
    return x.reshape((6 * n, h // 2, w // 3) + x.shape[5:])


def diag(x):
    return jnp.stack([jnp.diag(row, -1) for row in x]) if x.ndim == 2 else jnp.diag(x, -1)


def set_diag(x, d):
    rows = jnp.arange(d.shape[-1])
    return x.at[..., rows + 1, rows].set(d)


def diag_part(x):
    return jnp.diagonal(x, 1, -2, -1)


def one_hot(labels, on, off):
    labels = integers(labels)
    labels = jnp.where(labels < 0, labels + 3, labels)
    return jnp.where(labels[None] == jnp.arange(3)[:, None], on.reshape(()), off.reshape(()))


def largest(x):
    return -jnp.sort(-x, axis=0)[:2]


def searchsorted(side):
    def run(x, v):
        x = jnp.sort(x)
        if x.ndim == 1:
            return jnp.searchsorted(x, v, side=side)
        return jnp.stack([jnp.searchsorted(a, b, side=side) for a, b in zip(x, v)])
    return run


def gemm(a, b, c):
    return 2 * a.T @ b.T - 3 * c


KINDS = {"update": lambda x, u: u, "add": jnp.add, "mul": jnp.multiply, "min": jnp.minimum, "max": jnp.maximum}

FUNCTIONS = {
    "gather of batches": batched_gather,
    "gather_nd of batches": batched_gather_nd,
    "take_along_axis": lambda x, i: jnp.take_along_axis(*broadcast_but_axis(x, integers(i)), 1),
    "gather_elements": gather_elements,
    **{f"tensor_scatter_nd_{name}": rows_of(kind) for name, kind in KINDS.items()},
    **{f"scatter under outer dimensions, {name}": middle_of(kind) for name, kind in KINDS.items()},
    "tensor_scatter_nd_sub": lambda x, i, u: rows_of(jnp.add)(x, i, -u),
    "scatter_nd": scatter_nd,
    "scatter_elements": scatter_elements,
    "put_along_axis": put_along_axis,
    "unsorted_segment_sum": segments(lambda x: jnp.sum(x, 0)),
    "unsorted_segment_mean": segments(lambda x: jnp.mean(x, 0)),
    "unsorted_segment_sqrt_n": segments(lambda x: jnp.sum(x, 0) / jnp.sqrt(x.shape[0])),
    "unsorted_segment_prod": segments(lambda x: jnp.prod(x, 0)),
    "unsorted_segment_max": segments(lambda x: jnp.max(x, 0)),
    "unsorted_segment_min": segments(lambda x: jnp.min(x, 0)),
    "sort": lambda x: jnp.sort(x, axis=0),
    "sort descending": lambda x: -jnp.sort(-x, axis=0),
    "argsort": lambda x: jnp.argsort(x, axis=0, stable=True),
    "argsort descending": lambda x: jnp.argsort(-x, axis=0, stable=True),
    "top_k": largest,
    "top_k of the smallest": lambda x: jnp.argsort(x, axis=-1, stable=True)[..., :3],
    "searchsorted": searchsorted("left"),
    "searchsorted right": searchsorted("right"),
    "strided_slice": strided,
    "strided_slice with masks": masked,
    "split by sizes": lambda x: x[2:-1],
    "pad reflect": padding("reflect"),
    "pad symmetric": padding("symmetric"),
    "pad edge": padding("edge"),
    "pad wrap": padding("wrap"),
    "pad reflect far": lambda x: jnp.pad(x, ((7, 5),), mode="reflect" if x.shape[0] > 1 else "edge"),
    "pad with a value": lambda x, v: jnp.concatenate(
        [jnp.full((1, 2), v.reshape(())), x[:-1]]) @ jnp.eye(2, 4) + jnp.full((x.shape[0], 4), v.reshape(())) *
        jnp.array([0.0, 0.0, 1.0, 1.0]),
    "repeat": lambda x: jnp.repeat(x, 3, axis=1),
    "roll of axes": lambda x: jnp.roll(x, (1, -2), (0, 1)),
    "flip_up_down": lambda x: jnp.flip(x, -3),
    "flip": jnp.flip,
    "rot90": lambda x: jnp.rot90(x, 1, (-3, -2)),
    "rot90 back": lambda x: jnp.rot90(x, -1, (-3, -2)),
    "space_to_depth": space_to_depth,
    "space_to_batch_nd": space_to_batch,
    "batch_to_space_nd": lambda x: x,
    "depth_to_space NHWC DCR": lambda x: x,
    "depth_to_space NHWC CRD": lambda x: x,
    "depth_to_space NCHW DCR": lambda x: x,
    "depth_to_space NCHW CRD": lambda x: x,
    "reverse_sequence": reverse_sequence,
    "band_part": lambda x: jnp.tril(x) - jnp.tril(x, -2),
    "triu": lambda x: jnp.triu(x, 1),
    "tril": lambda x: jnp.tril(x, -1),
    "diag": diag,
    "diag_part": diag_part,
    "trace": lambda x: jnp.trace(x, axis1=-2, axis2=-1),
    "set_diag": set_diag,
    "sequence_mask": lambda n: jnp.arange(4) < n[..., None],
    "one_hot of values": one_hot,
    "meshgrid ij": lambda a, b: jnp.meshgrid(a, b, indexing="ij")[1],
    "eye of rows and columns": lambda *_: jnp.eye(3, 5, 1),
    "range in steps": lambda *_: jnp.arange(7, -4, -3),
    "range of fractions": lambda *_: jnp.arange(0.5, 2.0, 0.25),
    "matvec": lambda a, b: jnp.einsum("bij,bj->bi", a, b),
    "matmul of transposed operands": lambda a, b: jnp.swapaxes(a, -1, -2) @ b.T,
    "matmul of vectors": jnp.matmul,
    "tensordot": lambda a, b: jnp.tensordot(a, b, ((0, 2), (1, 0))),
    "gemm": gemm,
    "einsum of three": lambda a, b, c: jnp.einsum("ab,bc,cd->da", a, b, c),
    "einsum of diagonals": lambda a, b: jnp.einsum("...ii,jij->...ij", a, b),
    "det": jnp.linalg.det,
    "adjugate": lambda x: jnp.linalg.det(x)[..., None, None] * jnp.linalg.inv(x),
    "inverse": lambda x: jnp.linalg.inv(x + jnp.eye(x.shape[-1])),
}


def broadcast_but_axis(x, i):
    """For axis 1 of three dimensions."""
    outer, inner = max(x.shape[0], i.shape[0]), max(x.shape[2], i.shape[2])
    return jnp.broadcast_to(x, (outer, x.shape[1], inner)), jnp.broadcast_to(i, (outer, i.shape[1], inner))
