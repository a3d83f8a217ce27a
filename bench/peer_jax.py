import time; _t = time.time()
import os, sys
import jax, jax.numpy as jnp, optax
from functools import partial
IMPORT = time.time() - _t
T0 = float(os.environ.get("T0", _t))
from peer_protocol import *
W, MODE = sys.argv[1], sys.argv[2]           # MODE: jit | nojit (only eager_chain) | keras (only fit) | text FILE
BUR = lambda r: jax.block_until_ready(r)
A = jnp.asarray
def xent(logits, y): return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()

def mlp_apply(w, x, act=jax.nn.relu, dt=None):
    n = len(w) // 2
    for i in range(n):
        k, b = w[2 * i], w[2 * i + 1]
        if dt is not None: k, b, x = k.astype(dt), b.astype(dt), x.astype(dt)
        x = x @ k + b
        if i < n - 1: x = act(x)
    return x

def by_adam(eps, b1=.9, b2=.999):
    """optax.scale_by_adam with Keras's eps."""
    def init(p): return jnp.zeros((), jnp.int32), jax.tree.map(jnp.zeros_like, p), jax.tree.map(jnp.zeros_like, p)
    def update(g, state, p=None):
        t, m, v = state; t = t + 1; m = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, m, g); v = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * g * g, v, g)
        a = jnp.sqrt(1 - b2 ** t) / (1 - b1 ** t); return jax.tree.map(lambda m, v: a * m / (jnp.sqrt(v) + eps), m, v), (t, m, v)
    return optax.GradientTransformation(init, update)
def adam(lr, eps=1e-7): return optax.chain(by_adam(eps), optax.scale(-lr))
def adamw(lr, weight_decay, eps=1e-8): return optax.chain(by_adam(eps), optax.add_decayed_weights(weight_decay), optax.scale(-lr))
class Trainer:
    """holds params/opt state; jitted step donates both, returns the loss."""
    def __init__(s, loss, params, tx, aux=None):
        s.p = jax.tree.map(A, params); s.o = tx.init(s.p); s.aux = aux
        def step(p, o, aux, x, y):
            if aux is None: l, g = jax.value_and_grad(loss)(p, x, y)
            else: (l, aux), g = jax.value_and_grad(loss, has_aux=True)(p, aux, x, y)
            u, o = tx.update(g, o, p); return optax.apply_updates(p, u), o, aux, l
        s.f = jax.jit(step, donate_argnums=(0, 1, 2))
    def __call__(s, x, y):
        s.p, s.o, s.aux, l = s.f(s.p, s.o, s.aux, x, y); return l
item = lambda l: float(l)

def conv(x, k, s=1, groups=1): return jax.lax.conv_general_dilated(x, k, (s, s), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=groups)

def gpt_params(L, weights=None):
    w = iter(weights or gpt_weights(L)); take = lambda *names: {k: next(w) for k in names}
    return dict(take("e", "p"), b=[take("g1", "c1", "qkv", "qb", "o", "ob", "g2", "c2", "u", "ub", "d", "db") for _ in range(L)], **take("g", "c", "h"))
def ln(x, g, b):
    xf = x.astype(jnp.float32); m = xf.mean(-1, keepdims=True); v = jnp.square(xf - m).mean(-1, keepdims=True)
    return ((xf - m) * jax.lax.rsqrt(v + 1e-5) * g + b).astype(x.dtype)
def gpt_loss(p, i, t, H=8, dt=jnp.float32):
    c = lambda a: a.astype(dt)
    x = c(p["e"][i] + p["p"]); B, T, D = x.shape
    for b in p["b"]:
        q, k, v = jnp.split((ln(x, b["g1"], b["c1"]) @ c(b["qkv"]) + c(b["qb"])).reshape(B, T, 3 * H, D // H), 3, axis=2)
        if ATT == "dpa": a = jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(B, T, D)
        elif ATT == "bhtd":
            q, k, v = (jnp.swapaxes(a, 1, 2) for a in (q, k, v))
            s = (q @ jnp.swapaxes(k, 2, 3)).astype(jnp.float32) * (D // H) ** -0.5
            s = jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((T, T), bool)), s, -1e9), -1)
            a = jnp.swapaxes(s.astype(dt) @ v, 1, 2).reshape(B, T, D)
        else:
            s = jnp.einsum("bthd,bshd->bhts", q, k).astype(jnp.float32) * (D // H) ** -0.5
            s = jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((T, T), bool)), s, -1e9), -1)
            a = jnp.einsum("bhts,bshd->bthd", s.astype(dt), v).reshape(B, T, D)
        x = x + a @ c(b["o"]) + c(b["ob"])
        x = x + jax.nn.gelu(ln(x, b["g2"], b["c2"]) @ c(b["u"]) + c(b["ub"]), approximate=True) @ c(b["d"]) + c(b["db"])
    return xent((ln(x, p["g"], p["c"]) @ c(p["h"])).astype(jnp.float32), t)
ATT = os.environ.get("JAX_ATT", "bhtd")
def gpt_setup(L=4, dt=jnp.float32):
    i, t = gpt_data(); tx = optax.chain(optax.clip_by_global_norm(1.0), adamw(3e-4, weight_decay=0.1))
    return Trainer(partial(gpt_loss, dt=dt), gpt_params(L), tx), A(i, jnp.int32), A(t, jnp.int32)
def cls_setup(batch=64, sizes=(784, 128, 10), dt=None):
    x, y = cls_data((batch, sizes[0]), 10)
    tr = Trainer(lambda w, x, y: xent(mlp_apply(w, x, dt=dt).astype(jnp.float32), y), mlp_weights(sizes), adam(mlp_lr(sizes))); return tr, A(x), A(y, jnp.int32)
def cnn_setup():
    x, y = cls_data((64, 28, 28, 1), 10); r = np.random.default_rng(1)
    w = []
    for ci, co in ((1, 32), (32, 64), (64, 64)): w += [glorot(r, 9 * ci, 9 * co, (3, 3, ci, co)), np.zeros(co, np.float32)]
    w += mlp_weights((3136, 128, 10))
    def loss(w, x, y):
        for j, s in enumerate((1, 2, 1)): x = jax.nn.relu(conv(x, w[2 * j], s) + w[2 * j + 1])
        x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return xent(mlp_apply(w[6:], x.reshape(x.shape[0], -1)), y)
    return Trainer(loss, w, adam(1e-3)), A(x), A(y, jnp.int32)
def lstm_setup(unroll=1):
    x, y = cls_data((32, 128, 32), 10); r = np.random.default_rng(1); w = dict(k=glorot(r, 32, 256, (32, 256)), u=glorot(r, 64, 256, (64, 256)), b=np.zeros(256, np.float32), d=glorot(r, 64, 10, (64, 10)), c=np.zeros(10, np.float32))
    def loss(w, x, y):
        xp = jnp.swapaxes(x @ w["k"] + w["b"], 0, 1)
        def cell(hc, z):
            h, c = hc; i, f, g, o = jnp.split(z + h @ w["u"], 4, -1); c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g); return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None
        (h, _), _ = jax.lax.scan(cell, (jnp.zeros((32, 64)), jnp.zeros((32, 64))), xp, unroll=unroll); return xent(h @ w["d"] + w["c"], y)
    return Trainer(loss, w, adam(1e-3)), A(x), A(y, jnp.int32)
def step_text():
    """The text of a training step, as JAX gives it to a compiler."""
    setups = dict(mlp_tiny=cls_setup, mlp_big=lambda: cls_setup(256, (784, 2048, 2048, 10)), cnn=cnn_setup, lstm=lstm_setup,
                  gpt=gpt_setup, gpt_l1=lambda: gpt_setup(1), gpt_bf16=lambda: gpt_setup(4, jnp.bfloat16))
    tr, x, y = setups[W](); return tr.f.lower(tr.p, tr.o, tr.aux, x, y).as_text()
def out(res, **kw): emit("jax", MODE, W, IMPORT, res, **kw)

if W in ("pipeline", "fit", "retrace"): quiet()
if MODE == "text": open(sys.argv[3], "w").write(step_text())
elif W.startswith("mlp_tiny"):
    b = int(W[len("mlp_tiny_b"):]) if "_b" in W else 64
    tr, x, y = cls_setup(b); res = timed(lambda: tr(x, y), item); out(res, loss=item(tr(x, y)))
elif W == "predict_b1":
    w = [A(a) for a in mlp_weights((784, 128, 10))]; x = A(cls_data((1, 784), 10)[0]); f = jax.jit(mlp_apply); out(timed(lambda: f(w, x), lambda r: float(r[0, 0])))
elif W in ("mlp_big", "mlp_big_bf16"):
    tr, x, y = cls_setup(256, (784, 2048, 2048, 10), dt=jnp.bfloat16 if "bf16" in W else None); res = timed(lambda: tr(x, y), item); out(res, loss=item(tr(x, y)))
elif W == "cnn":
    tr, x, y = cnn_setup(); res = timed(lambda: tr(x, y), item); out(res, loss=item(tr(x, y)))
elif W == "dwsep":
    x, y = cls_data((64, 32, 32, 3), 10); r = np.random.default_rng(1); P = []; S = []
    def bnp(c): S.append((np.zeros(c, np.float32), np.ones(c, np.float32))); return (np.ones(c, np.float32), np.zeros(c, np.float32))
    P.append((glorot(r, 27, 288, (3, 3, 3, 32)), bnp(32))); c = 32
    for ch, st in DW: P.append((glorot(r, 9, 9, (3, 3, 1, c)), bnp(c))); P.append((glorot(r, c, ch, (1, 1, c, ch)), bnp(ch))); c = ch
    p = dict(c=P, w=glorot(r, 256, 10, (256, 10)), b=np.zeros(10, np.float32))
    def loss(p, S, x, y):
        N = []
        def bn(x, gb, s):
            m = x.mean((0, 1, 2)); v = jnp.square(x - m).mean((0, 1, 2)); N.append((0.99 * s[0] + 0.01 * m, 0.99 * s[1] + 0.01 * v))
            return jax.nn.relu((x - m) * (jax.lax.rsqrt(v + 1e-3) * gb[0]) + gb[1])
        x = bn(conv(x, p["c"][0][0], 2), p["c"][0][1], S[0]); c = 32
        for j, (ch, st) in enumerate(DW):
            k, gb = p["c"][1 + 2 * j]; x = bn(conv(x, k, st, groups=c), gb, S[1 + 2 * j]); k, gb = p["c"][2 + 2 * j]; x = bn(conv(x, k), gb, S[2 + 2 * j]); c = ch
        return xent(x.mean((1, 2)) @ p["w"] + p["b"], y), N
    tr = Trainer(loss, p, optax.sgd(0.01, momentum=0.9), aux=jax.tree.map(A, S)); x, y = A(x), A(y, jnp.int32)
    res = timed(lambda: tr(x, y), item); out(res, loss=item(tr(x, y)))
elif W.startswith("gpt"):
    L = int(W[5:]) if W.startswith("gpt_l") else 4
    tr, i, t = gpt_setup(L, jnp.bfloat16 if "bf16" in W else jnp.float32)
    if W.startswith("gpt_l"): res = timed(lambda: tr(i, t), item, min_s=2, min_rep=8, warm=3)
    else: res = timed(lambda: tr(i, t), item)
    out(res, att=ATT, loss=item(tr(i, t)))
elif W in ("generate", "generate_b8"):
    V, T, D, H, L = GENERATE.values(); B = 8 if W.endswith("b8") else 1; p = jax.tree.map(A, gpt_params(L, generate_weights()))
    def one(p, K, Z, t, place):
        x = p["e"][t] + p["p"][place]; nk, nz = [], []
        for j, b in enumerate(p["b"]):
            q, k, v = jnp.split((ln(x, b["g1"], b["c1"]) @ b["qkv"] + b["qb"]).reshape(B, 3 * H, D // H), 3, axis=1)
            kk = jax.lax.dynamic_update_slice(K[j], k[:, :, None], (0, 0, place, 0)); zz = jax.lax.dynamic_update_slice(Z[j], v[:, :, None], (0, 0, place, 0)); nk.append(kk); nz.append(zz)
            s = jax.nn.softmax(jnp.where(jnp.arange(T) <= place, jnp.einsum("bhd,bhtd->bht", q, kk) * (D // H) ** -0.5, -1e9), -1)
            x = x + jnp.einsum("bht,bhtd->bhd", s, zz).reshape(B, D) @ b["o"] + b["ob"]
            x = x + jax.nn.gelu(ln(x, b["g2"], b["c2"]) @ b["u"] + b["ub"], approximate=True) @ b["d"] + b["db"]
        return nk, nz, jnp.argmax(ln(x, p["g"], p["c"]) @ p["h"], -1)
    f = jax.jit(one, donate_argnums=(1, 2))
    made = Tokens(B); kept = [None, None]
    def begin(): kept[:] = ([jnp.zeros((B, H, T, D // H)) for _ in range(L)] for _ in range(2))
    def following(k, t): kept[0], kept[1], t = f(p, *kept, np.asarray(t, np.int32), k); return np.asarray(t).tolist()
    token = lambda: made.step(begin, following)
    res = timed(token, lambda r: None); out(res, sum_of_tokens=made.first_sum(token))
elif W == "jacobian":
    w = [A(a) for a in mlp_weights((64, 256, 256, 10))]; x = A(cls_data((8192, 64), 10)[0])
    g = jax.jit(lambda w, x: jax.vmap(jax.jacrev(lambda x: mlp_apply(w, x, jnp.tanh)))(x)); res = timed(lambda: g(w, x), BUR)
    J = g(w, x); assert J.shape == (8192, 10, 64); g2 = jax.jit(lambda w, x: jax.vmap(jax.jacfwd(lambda x: mlp_apply(w, x, jnp.tanh)))(x)); r2 = timed(lambda: g2(w, x), BUR, min_s=1, min_rep=8)
    out(res, jacfwd_us=r2["median_us"], sumabs=float(jnp.abs(J).sum()))
elif W == "input_grad":
    w = [A(a) for a in mlp_weights((784, 512, 512, 1))]; x = A(cls_data((65536, 784), 10)[0])
    g = jax.jit(jax.grad(lambda x, w: mlp_apply(w, x).sum())); res = timed(lambda: g(x, w), BUR, min_rep=12, warm=2); out(res)
elif W == "pegn":
    w = [A(a) for a in mlp_weights((784, 128, 10))]; x, y = cls_data((1024, 784), 10); x, y = A(x), A(y, jnp.int32)
    l1 = lambda w, x, y: xent(mlp_apply(w, x[None]), y[None])
    f = jax.jit(lambda w, x, y: jnp.sqrt(sum(jnp.square(q).reshape(q.shape[0], -1).sum(1) for q in jax.vmap(jax.grad(l1), (None, 0, 0))(w, x, y))))
    res = timed(lambda: f(w, x, y), BUR); out(res, sum=float(f(w, x, y).sum()))
elif W == "accumulate":
    x, y = cls_data((1024, 784), 10); x, y = A(x).reshape(8, 128, 784), A(y, jnp.int32).reshape(8, 128); ex = {}; best = None
    lossf = lambda w, x, y: xent(mlp_apply(w, x), y); tx = adam(mlp_lr((784, 2048, 2048, 10)))
    for nm in ("unrolled", "scan"):
        p = [A(a) for a in mlp_weights((784, 2048, 2048, 10))]; o = tx.init(p)
        def step(p, o, x, y):
            vg = jax.value_and_grad(lossf); L = 0.0
            if nm == "scan":
                (L, G), _ = jax.lax.scan(lambda c, xy: (jax.tree.map(jnp.add, c, vg(p, *xy)), None), (0.0, jax.tree.map(jnp.zeros_like, p)), (x, y))
            else:
                G = None
                for k in range(8): l, g = vg(p, x[k], y[k]); L = L + l; G = g if G is None else jax.tree.map(jnp.add, G, g)
            u, o = tx.update(jax.tree.map(lambda g: g / 8, G), o, p); return optax.apply_updates(p, u), o, L / 8
        f = jax.jit(step, donate_argnums=(0, 1)); st = [p, o]
        def run():
            st[0], st[1], l = f(st[0], st[1], x, y); return l
        r = timed(run, item); ex[nm + "_us"] = r["median_us"]
        if best is None or r["median_us"] < best["median_us"]: best = r
    out(best, **ex)
elif W == "adamw_update":
    r = np.random.default_rng(0); ps = [A(r.standard_normal(s, dtype=np.float32) * 0.02) for s in ADAMW_SHAPES]; gs = [A(r.standard_normal(s, dtype=np.float32) * 0.01) for s in ADAMW_SHAPES]
    tx = optax.chain(optax.clip_by_global_norm(1.0), adamw(3e-4, weight_decay=0.1)); st = [ps, tx.init(ps)]
    f = jax.jit(lambda p, o, g: (lambda uo: (optax.apply_updates(p, uo[0]), uo[1]))(tx.update(g, o, p)), donate_argnums=(0, 1))
    def run(): st[0], st[1] = f(st[0], st[1], gs); return st[0]
    out(timed(run, BUR))
elif W == "eager_chain":
    a, b = jnp.full(64, 0.1), jnp.full(64, 0.9); x = jnp.linspace(-1, 1, 64)
    def chain(y):
        for i in range(100): y = y + a if i % 3 == 0 else (y * b if i % 3 == 1 else jnp.tanh(y))
        return y
    f, g = chain, jax.grad(lambda x: chain(x).sum())
    if MODE == "jit": f, g = jax.jit(f), jax.jit(g)
    r1 = timed(lambda: f(x), BUR); r2 = timed(lambda: g(x), BUR); out(r2, fwd_us_per_op=r1["median_us"] / 100, fwd_bwd_us_per_op=r2["median_us"] / 100, fwd_sustained_us_per_op=r1["extra"]["sustained_us"] / 100,
        fwd_mean_us_per_op=r1["extra"]["mean_us"] / 100, fwd_bwd_mean_us_per_op=r2["extra"]["mean_us"] / 100)
elif W == "pipeline":
    xtr, ytr, _, _ = fmnist(); ytr = ytr.astype(np.int32); ex = {}
    def byhand(dev):
        t = time.perf_counter(); p = np.random.permutation(60000); n = 0
        for k in range(0, 60000, 64):
            i = p[k:k + 64]; x = norm_np(xtr[i]); y = ytr[i]
            if dev: x, y = jnp.asarray(x), jnp.asarray(y)
            n += len(y)
        if dev: x.block_until_ready()
        return n / (time.perf_counter() - t)
    ex["numpy"] = max(byhand(False) for _ in range(4)); ex["numpy_to_jnp"] = max(byhand(True) for _ in range(4))
    try:
        import grain
        def g_epoch(mk):
            t = time.perf_counter(); n = 0
            for x, y in mk(): n += len(y)
            return n / (time.perf_counter() - t)
        class Src:
            def __len__(s): return 60000
            def __getitem__(s, i): return xtr[i], ytr[i]
        class SrcB:
            def __init__(s, seed): s.p = np.random.default_rng(seed).permutation(60000)
            def __len__(s): return 938
            def __getitem__(s, i): k = s.p[i * 64:(i + 1) * 64]; return xtr[k], ytr[k]
        nm = lambda v: (norm_np(v[0]), v[1])
        it = lambda: grain.MapDataset.source(Src()).shuffle(seed=1).map(nm).batch(64).to_iter_dataset(grain.ReadOptions(num_threads=2, prefetch_buffer_size=500))
        it2 = lambda: grain.MapDataset.source(Src()).shuffle(seed=1).batch(64).map(nm).to_iter_dataset(grain.ReadOptions(num_threads=2, prefetch_buffer_size=16))
        it3 = lambda: grain.MapDataset.source(SrcB(1)).map(nm).to_iter_dataset(grain.ReadOptions(num_threads=2, prefetch_buffer_size=16))
        for k, mk in (("grain_item_map", it), ("grain_batch_then_map", it2), ("grain_batched_source", it3)): ex[k] = max(g_epoch(mk) for _ in range(2))
    except Exception as e: ex["grain_err"] = repr(e)[:200]
    best = max(v for k, v in ex.items() if k != "grain_err"); out(dict(median_us=64e6 / best), samples_per_s=ex)
elif W in ("cold_mlp", "cold_gpt"):
    tr, x, y = cls_setup() if W == "cold_mlp" else gpt_setup(); l = item(tr(x, y)); out({}, cold_s=time.time() - T0, loss=l)
elif W == "fit":
    xtr, ytr, xte, yte = fmnist(); X, Y, XE, YE = norm_np(xtr).reshape(-1, 784), ytr.astype(np.int32), norm_np(xte).reshape(-1, 784), yte.astype(np.int32)
    if MODE == "keras":
        import keras; assert keras.backend.backend() == "jax"
        from fit_keras import fit; out(fit(keras, X, Y, XE, YE, "auto"))
    else:
        tr, _, _ = cls_setup(); ts = []
        for e in range(5):
            t = time.perf_counter(); p = np.random.permutation(60000); ls = []
            for k in range(0, 59968, 64): i = p[k:k + 64]; ls.append(tr(X[i], Y[i]))
            tot = float(sum(ls[-1:])); ts.append(time.perf_counter() - t)
        acc = float((mlp_apply(tr.p, XE).argmax(1) == YE).mean()); out(dict(median_us=sorted(ts[1:])[2] * 1e6), epoch_s=sorted(ts[1:])[2], first_epoch_s=ts[0], test_acc=acc)
elif W == "retrace":
    tr, x, y = cls_setup(); r = {}
    for b in (64, 64, 48, 48, 80, 80, 96, 96, 112):
        x, y = cls_data((b, 784), 10); x, y = A(x), A(y, jnp.int32); t = time.perf_counter(); item(tr(x, y)); r.setdefault(str(b), []).append(time.perf_counter() - t)
    out({}, calls_s=r)
elif W == "lstm":
    ex = {}; best = None
    for un in (1, 4, 16):
        tr, x, y = lstm_setup(un); res = timed(lambda: tr(x, y), item); ex["unroll%d_us" % un] = res["median_us"]; ex["unroll%d_first_s" % un] = res["first_call_s"]
        if best is None or res["median_us"] < best["median_us"]: best = res; ex["how"] = "unroll %d" % un
    out(best, **ex)
else: sys.exit("unknown workload")
