"""JAX on several CPU processes: jax.distributed.initialize, one device a process, data parallel.
python dist_jax.py WORKLOAD [--ranks 2] [--threads 1] [--scaling weak] [--backend gloo|mpi] [--mode shard_map|pjit] [--nosync]
shard_map: gradients of the local mean, then pmean (all-reduce). pjit: one program on global arrays, XLA places the all-reduces."""
import time, os, sys; T0 = float(os.environ.get("T0", time.time()))
from dist_common import *
A = arguments(); A.backend = A.backend or "gloo"; A.mode = A.mode or "shard_map"
if not rank_main(): sys.exit(launch(A, "jax", lambda r, n, p: dict(DIST_COORDINATOR="127.0.0.1:%d" % p[0], JAX_PLATFORMS="cpu"), pin=True))
import jax, jax.numpy as jnp, optax
from jax.sharding import PartitionSpec as P, NamedSharding
rank, ranks = int(os.environ["DIST_RANK"]), int(os.environ["DIST_RANKS"]); W = A.workload; group = ranks > 1 and not A.nosync
if group:
    jax.config.update("jax_cpu_collectives_implementation", A.backend)
    kw = {}
    if os.environ.get("DIST_TIMEOUT"): kw = dict(initialization_timeout=int(os.environ["DIST_TIMEOUT"]))
    jax.distributed.initialize(os.environ["DIST_COORDINATOR"], num_processes=ranks, process_id=rank, **kw)

def xent(z, y): return optax.softmax_cross_entropy_with_integer_labels(z, y).mean()
def mlp_apply(w, x):
    n = len(w) // 2
    for i in range(n):
        x = x @ w[2 * i] + w[2 * i + 1]
        if i < n - 1: x = jax.nn.relu(x)
    return x
def by_adam(eps, b1=.9, b2=.999):
    def init(p): return jnp.zeros((), jnp.int32), jax.tree.map(jnp.zeros_like, p), jax.tree.map(jnp.zeros_like, p)
    def update(g, state, p=None):
        t, m, v = state; t = t + 1; m = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, m, g); v = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * g * g, v, g)
        a = jnp.sqrt(1 - b2 ** t) / (1 - b1 ** t); return jax.tree.map(lambda m, v: a * m / (jnp.sqrt(v) + eps), m, v), (t, m, v)
    return optax.GradientTransformation(init, update)
def conv(x, k, s=1): return jax.lax.conv_general_dilated(x, k, (s, s), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
def cnn_loss(w, x, y):
    for j, s in enumerate((1, 2, 1)): x = jax.nn.relu(conv(x, w[2 * j], s) + w[2 * j + 1])
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"); return xent(mlp_apply(w[6:], x.reshape(x.shape[0], -1)), y)
def ln(x, g, b): m = x.mean(-1, keepdims=True); v = jnp.square(x - m).mean(-1, keepdims=True); return (x - m) * jax.lax.rsqrt(v + 1e-5) * g + b
def gpt_params(L=4):
    w = iter(gpt_weights(L)); take = lambda *names: {k: next(w) for k in names}
    return dict(take("e", "p"), b=[take("g1", "c1", "qkv", "qb", "o", "ob", "g2", "c2", "u", "ub", "d", "db") for _ in range(L)], **take("g", "c", "h"))
def gpt_loss(p, i, t, H=8):
    x = p["e"][i] + p["p"]; B, T, D = x.shape
    for b in p["b"]:
        q, k, v = (jnp.swapaxes(a, 1, 2) for a in jnp.split((ln(x, b["g1"], b["c1"]) @ b["qkv"] + b["qb"]).reshape(B, T, 3 * H, D // H), 3, axis=2))
        s = jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((T, T), bool)), q @ jnp.swapaxes(k, 2, 3) * (D // H) ** -0.5, -1e9), -1)
        x = x + jnp.swapaxes(s @ v, 1, 2).reshape(B, T, D) @ b["o"] + b["ob"]
        x = x + jax.nn.gelu(ln(x, b["g2"], b["c2"]) @ b["u"] + b["ub"], approximate=True) @ b["d"] + b["db"]
    return xent(ln(x, p["g"], p["c"]) @ p["h"], t)
loss = gpt_loss if W == "gpt" else cnn_loss if W == "cnn" else lambda w, x, y: xent(mlp_apply(w, x), y)
params = gpt_params() if W == "gpt" else cnn_weights() if W == "cnn" else mlp_weights(SIZES[W])
tx = optax.chain(optax.clip_by_global_norm(1.0), by_adam(1e-8), optax.add_decayed_weights(.1), optax.scale(-3e-4)) if W == "gpt" else optax.chain(by_adam(1e-7), optax.scale(-(mlp_lr(SIZES[W]) if W in SIZES else 1e-3)))
x, y = global_batch(W, ranks, A.scaling); y = y.astype(np.int32); x = x.astype(np.int32) if W == "gpt" else x
x, y = rows(x, rank, ranks), rows(y, rank, ranks)
def one(p, o, x, y):
    l, g = jax.value_and_grad(loss)(p, x, y)
    if group and A.mode == "shard_map": l, g = jax.lax.pmean((l, g), "d")
    u, o = tx.update(g, o, p); return optax.apply_updates(p, u), o, l
if group:
    mesh = jax.make_mesh((ranks,), ("d",), axis_types=(jax.sharding.AxisType.Auto,)); rep, sh = NamedSharding(mesh, P()), NamedSharding(mesh, P("d"))
    put = lambda a: jax.make_array_from_process_local_data(sh, a)
    x, y = put(x), put(y); p = jax.tree.map(lambda a: jax.make_array_from_process_local_data(rep, a), params)
    o = jax.jit(tx.init, out_shardings=rep)(p)
    if A.mode == "shard_map": f = jax.jit(jax.shard_map(one, mesh=mesh, in_specs=(P(), P(), P("d"), P("d")), out_specs=P(), check_vma=False), donate_argnums=(0, 1))
    else: f = jax.jit(one, in_shardings=(rep, rep, sh, sh), out_shardings=rep, donate_argnums=(0, 1))
else:
    p = jax.tree.map(jnp.asarray, params); o = tx.init(p); x, y = jnp.asarray(x), jnp.asarray(y); f = jax.jit(one, donate_argnums=(0, 1))
s = [p, o]
def step(): s[0], s[1], l = f(s[0], s[1], x, y); return l
item = lambda l: float(l)
beside = Beside(); r = timed(step, item, beside.agree, beside.barrier, rank, T0); r["parameters"] = sum(a.size for a in jax.tree.leaves(params))
if group:
    flat = jax.make_array_from_process_local_data(sh, np.ones((1, r["parameters"]), np.float32)); ar = jax.jit(jax.shard_map(lambda a: jax.lax.psum(a, "d"), mesh=mesh, in_specs=P("d"), out_specs=P(), check_vma=False)); ts = []
    for _ in range(15): beside.barrier(); a = time.perf_counter(); jax.block_until_ready(ar(flat)); ts.append(time.perf_counter() - a)
    r["allreduce_alone_us"] = float(np.median(ts)) * 1e6
print(json.dumps(r), flush=True); beside.barrier()
