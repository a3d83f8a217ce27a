import time; _t = time.time()
import os, sys
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import tensorflow as tf
tf.config.threading.set_intra_op_parallelism_threads(2); tf.config.threading.set_inter_op_parallelism_threads(2)
import keras
IMPORT = time.time() - _t
T0 = float(os.environ.get("T0", _t))
from peer_protocol import *
W, MODE = sys.argv[1], sys.argv[2]            # MODE: eager | function | xla
keras.utils.set_random_seed(1)
L = keras.layers
def wrap(f, **kw):
    return f if MODE == "eager" else tf.function(f, jit_compile=(MODE == "xla"), reduce_retracing=False, **kw)
C = tf.constant
xent = lambda y, z: tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=z))
item = lambda l: float(l.numpy())
sync = lambda r: r.numpy() if hasattr(r, "numpy") else [q.numpy() for q in r]

def set_mlp(m, sizes): m.set_weights(mlp_weights(sizes))
def mlp(sizes, act="relu", dtype=None):
    m = keras.Sequential([L.Input((sizes[0],), dtype="float32")] + [L.Dense(n, activation=act if k < len(sizes) - 2 else None, dtype=dtype) for k, n in enumerate(sizes[1:])])
    set_mlp(m, sizes); return m
def train(model, vs, opt, loss_of):
    def step(x, y):
        with tf.GradientTape() as tape: loss = loss_of(x, y)
        g = tape.gradient(loss, vs); opt.apply_gradients(zip(g, vs)); return loss
    return wrap(step)
def cls_setup(batch=64, sizes=(784, 128, 10), dtype=None):
    x, y = cls_data((batch, sizes[0]), 10); m = mlp(sizes, dtype=dtype); opt = keras.optimizers.Adam(mlp_lr(sizes)); vs = m.trainable_variables; opt.build(vs)
    return m, opt, train(m, vs, opt, lambda x, y: xent(y, tf.cast(m(x, training=True), tf.float32))), C(x), C(y)

def raw_adam(vs, lr=1e-3, b1=.9, b2=.999, eps=1e-7):
    """plain-TF variant: tf.raw_ops.ResourceApplyAdam (TF's fused CPU kernel), one call per variable."""
    ms = [tf.Variable(tf.zeros_like(v)) for v in vs]; us = [tf.Variable(tf.zeros_like(v)) for v in vs]; p1, p2 = tf.Variable(b1), tf.Variable(b2)
    def apply(gs):
        for v, m, u, g in zip(vs, ms, us, gs):
            tf.raw_ops.ResourceApplyAdam(var=v.handle, m=m.handle, v=u.handle, beta1_power=p1, beta2_power=p2, lr=C(lr), beta1=C(b1), beta2=C(b2), epsilon=C(eps), grad=g)
        p1.assign(p1 * b1); p2.assign(p2 * b2)
    return apply
def raw_mlp_setup(batch, sizes):
    """the leanest TF program: tf.Variable, tf.matmul, fused Adam kernel; no Keras."""
    x, y = cls_data((batch, sizes[0]), 10); ws = [tf.Variable(a) for a in mlp_weights(sizes)]
    if MODE == "xla":
        ms = [tf.Variable(tf.zeros_like(v)) for v in ws]; us = [tf.Variable(tf.zeros_like(v)) for v in ws]; t = tf.Variable(0.0)
        def ap(gs):
            t.assign_add(1.0); a = 1e-3 * tf.sqrt(1 - tf.pow(0.999, t)) / (1 - tf.pow(0.9, t))
            for v, m, u, g in zip(ws, ms, us, gs):
                m.assign(m * 0.9 + 0.1 * g); u.assign(u * 0.999 + 0.001 * g * g); v.assign_sub(a * m / (tf.sqrt(u) + 1e-7))
    else: ap = raw_adam(ws)
    def step(x, y):
        with tf.GradientTape() as tape:
            h = x; n = len(ws) // 2
            for i in range(n):
                h = tf.matmul(h, ws[2 * i]) + ws[2 * i + 1]
                if i < n - 1: h = tf.nn.relu(h)
            loss = xent(y, h)
        ap(tape.gradient(loss, ws)); return loss
    return wrap(step), C(x), C(y)

def gpt_setup(NL=4, dt=tf.float32):
    V, T, D, H, B = 65, 256, 256, 8, 8; r = np.random.default_rng(1); vs = []
    def var(*s, init="n"): v = tf.Variable((r.standard_normal(s) * 0.02).astype(np.float32) if init == "n" else np.full(s, 1.0 if init == "o" else 0.0, np.float32)); vs.append(v); return v
    e, p = var(V, D), var(T, D); bs = []
    for _ in range(NL): bs.append(dict(g1=var(D, init="o"), c1=var(D, init="z"), qkv=var(D, 3 * D), qb=var(3 * D, init="z"), o=var(D, D), ob=var(D, init="z"), g2=var(D, init="o"), c2=var(D, init="z"), u=var(D, 4 * D), ub=var(4 * D, init="z"), d=var(4 * D, D), db=var(D, init="z")))
    g, c, h = var(D, init="o"), var(D, init="z"), var(D, V); mask = C(np.where(np.tril(np.ones((T, T))) > 0, 0, -1e9).astype(np.float32)); cast = lambda a: tf.cast(a, dt)
    def ln(x, g, b):
        x = tf.cast(x, tf.float32); m, v = tf.nn.moments(x, -1, keepdims=True); return cast((x - m) * tf.math.rsqrt(v + 1e-5) * g + b)
    def lin(x, w, b=None):
        s = x.shape; x = tf.matmul(tf.reshape(x, (-1, s[-1])), cast(w)); x = x if b is None else tf.nn.bias_add(x, cast(b)); return tf.reshape(x, s[:-1] + [w.shape[1]])
    def loss_of(i, t):
        x = cast(tf.gather(e, i) + p)
        for b in bs:
            q, k, v = tf.unstack(tf.transpose(tf.reshape(lin(ln(x, b["g1"], b["c1"]), b["qkv"], b["qb"]), (B, T, 3, H, D // H)), (2, 0, 3, 1, 4)), axis=0)
            s = tf.nn.softmax(tf.cast(tf.matmul(q, k, transpose_b=True), tf.float32) * ((D // H) ** -0.5) + mask)
            a = tf.reshape(tf.transpose(tf.matmul(cast(s), v), (0, 2, 1, 3)), (B, T, D)); x = x + lin(a, b["o"], b["ob"])
            x = x + lin(tf.nn.gelu(lin(ln(x, b["g2"], b["c2"]), b["u"], b["ub"]), approximate=True), b["d"], b["db"])
        return xent(t, tf.cast(lin(ln(x, g, c), h), tf.float32))
    opt = keras.optimizers.AdamW(3e-4, weight_decay=0.1, global_clipnorm=1.0, epsilon=1e-8); kv = vs
    opt.build(kv)
    def step(i, t):
        with tf.GradientTape() as tape: loss = loss_of(i, t)
        gs = tape.gradient(loss, vs); gs = [tf.convert_to_tensor(q) for q in gs]; opt.apply_gradients(zip(gs, kv)); return loss
    i, t = gpt_data(); return wrap(step), C(i, tf.int32), C(t, tf.int32)
def out(res, **kw): emit("tf", MODE, W, IMPORT, res, **kw)

if W in ("pipeline", "fit", "retrace"): quiet()
if W.startswith("mlp_tiny"):
    b = int(W[len("mlp_tiny_b"):]) if "_b" in W else 64
    m, opt, st, x, y = cls_setup(b); res = timed(lambda: st(x, y), item); ex = dict(loss=item(st(x, y)), keras_us=res["median_us"])
    st, x, y = raw_mlp_setup(b, (784, 128, 10)); r2 = timed(lambda: st(x, y), item); ex.update(raw_us=r2["median_us"], raw_sustained_us=r2["extra"]["sustained_us"], raw_first_s=r2["first_call_s"], raw_loss=item(st(x, y)))
    out(res, **ex)
elif W == "predict_b1":
    m = mlp((784, 128, 10)); x = C(cls_data((1, 784), 10)[0]); f = wrap(lambda x: m(x, training=False)); out(timed(lambda: f(x), lambda r: float(r[0, 0])))
elif W in ("mlp_big", "mlp_big_bf16"):
    m, opt, st, x, y = cls_setup(256, (784, 2048, 2048, 10), dtype="mixed_bfloat16" if "bf16" in W else None); res = timed(lambda: st(x, y), item); ex = dict(loss=item(st(x, y)))
    if W == "mlp_big":
        st, x, y = raw_mlp_setup(256, (784, 2048, 2048, 10)); r2 = timed(lambda: st(x, y), item); ex.update(raw_us=r2["median_us"])
    out(res, **ex)
elif W in ("cnn", "dwsep"):
    if W == "cnn":
        cv = lambda n, s=1: L.Conv2D(n, 3, strides=s, padding="same", activation="relu")
        m = keras.Sequential([L.Input((28, 28, 1)), cv(32), cv(64, 2), cv(64), L.MaxPooling2D(2), L.Flatten(), L.Dense(128, activation="relu"), L.Dense(10)]); x, y = cls_data((64, 28, 28, 1), 10); opt = keras.optimizers.Adam(1e-3)
    else:
        bn = lambda: L.BatchNormalization(momentum=0.99, epsilon=1e-3)
        ls = [L.Input((32, 32, 3)), L.Conv2D(32, 3, strides=2, padding="same", use_bias=False), bn(), L.ReLU()]
        for ch, s in DW: ls += [L.DepthwiseConv2D(3, strides=s, padding="same", use_bias=False), bn(), L.ReLU(), L.Conv2D(ch, 1, use_bias=False), bn(), L.ReLU()]
        m = keras.Sequential(ls + [L.GlobalAveragePooling2D(), L.Dense(10)]); x, y = cls_data((64, 32, 32, 3), 10); opt = keras.optimizers.SGD(0.01, momentum=0.9)
    vs = m.trainable_variables; opt.build(vs); st = train(m, vs, opt, lambda x, y: xent(y, m(x, training=True))); x, y = C(x), C(y)
    res = timed(lambda: st(x, y), item); out(res, loss=item(st(x, y)))
elif W.startswith("gpt"):
    st, i, t = gpt_setup(int(W[5:]) if W.startswith("gpt_l") else 4, tf.bfloat16 if "bf16" in W else tf.float32)
    if W.startswith("gpt_l"): res = timed(lambda: st(i, t), item, min_s=2, min_rep=8, warm=3)
    else: res = timed(lambda: st(i, t), item)
    out(res, loss=item(st(i, t)))
elif W == "jacobian":
    ws = [C(a) for a in mlp_weights((64, 256, 256, 10))]; x = C(cls_data((8192, 64), 10)[0])
    def g(x):
        with tf.GradientTape() as t:
            t.watch(x); h = tf.tanh(tf.matmul(x, ws[0]) + ws[1]); h = tf.tanh(tf.matmul(h, ws[2]) + ws[3]); o = tf.matmul(h, ws[4]) + ws[5]
        return t.batch_jacobian(o, x)
    g = wrap(g); J = lambda: g(x); res = timed(lambda: g(x), lambda r: r[0, 0, 0].numpy(), min_rep=15); out(res, sumabs=float(tf.reduce_sum(tf.abs(g(x)))))
elif W == "input_grad":
    ws = [C(a) for a in mlp_weights((784, 512, 512, 1))]; x = C(cls_data((65536, 784), 10)[0])
    def g(x):
        with tf.GradientTape() as t:
            t.watch(x); h = tf.nn.relu(tf.matmul(x, ws[0]) + ws[1]); h = tf.nn.relu(tf.matmul(h, ws[2]) + ws[3]); o = tf.reduce_sum(tf.matmul(h, ws[4]) + ws[5])
        return t.gradient(o, x)
    g = wrap(g); res = timed(lambda: g(x), lambda r: r[0, 0].numpy(), min_rep=12, warm=2); out(res)
elif W == "pegn":
    ws = [tf.Variable(a) for a in mlp_weights((784, 128, 10))]; x, y = cls_data((1024, 784), 10); x, y = C(x), C(y); ex = {}; best = None
    def one(xy):
        x, y = xy
        with tf.GradientTape() as t: loss = xent(y[None], tf.matmul(tf.nn.relu(tf.matmul(x[None], ws[0]) + ws[1]), ws[2]) + ws[3])
        return t.gradient(loss, ws)
    nrm = lambda gs: tf.sqrt(tf.add_n([tf.reduce_sum(tf.square(tf.reshape(g, (1024, -1))), 1) for g in gs]))
    def f1(x, y): return nrm(tf.vectorized_map(one, (x, y)))
    def f2(x, y):
        with tf.GradientTape() as t: l = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=tf.matmul(tf.nn.relu(tf.matmul(x, ws[0]) + ws[1]), ws[2]) + ws[3])
        return nrm(t.jacobian(l, ws))
    for nm, f in (("vectorized_map", f1), ("jacobian", f2)):
        try:
            f = wrap(f); r = timed(lambda: f(x, y), lambda r: r[0].numpy(), min_rep=10, max_s=12); ex[nm + "_us"] = r["median_us"]; ex[nm + "_sum"] = float(tf.reduce_sum(f(x, y)))
            if best is None or r["median_us"] < best["median_us"]: best = r; ex["how"] = nm
        except Exception as e: ex[nm + "_err"] = repr(e)[:200]
    out(best or {}, **ex)
elif W == "accumulate":
    m, opt, _, _, _ = cls_setup(128, (784, 2048, 2048, 10)); vs = m.trainable_variables; x, y = cls_data((1024, 784), 10); xs, ys = C(x.reshape(8, 128, 784)), C(y.reshape(8, 128))
    def step(xs, ys):
        G = None; T = 0.0
        for k in range(8):
            with tf.GradientTape() as tape: l = xent(ys[k], m(xs[k], training=True)) / 8
            g = tape.gradient(l, vs); G = g if G is None else [a + b for a, b in zip(G, g)]; T = T + l
        opt.apply_gradients(zip(G, vs)); return T
    st = wrap(step); res = timed(lambda: st(xs, ys), item); out(res, loss=item(st(xs, ys)))
elif W == "adamw_update":
    r = np.random.default_rng(0); vs = [tf.Variable(r.standard_normal(s, dtype=np.float32) * 0.02) for s in ADAMW_SHAPES]; gs = [C(r.standard_normal(s, dtype=np.float32) * 0.01) for s in ADAMW_SHAPES]
    opt = keras.optimizers.AdamW(3e-4, weight_decay=0.1, global_clipnorm=1.0, epsilon=1e-8); opt.build(vs); one = C(1.0)
    def step(): opt.apply_gradients(zip(gs, vs)); return tf.identity(one)
    def step_args(gs): opt.apply_gradients(zip(gs, vs)); return tf.identity(one)
    f = wrap(step_args); res = timed(lambda: f(gs), item); ex = {}
    if MODE == "function":
        ap = raw_adam(vs, 3e-4, eps=1e-8)
        def raw(gs):
            gs, n = tf.clip_by_global_norm(gs, 1.0)
            for v in vs: v.assign(v * C(1 - 3e-4 * 0.1))
            ap(gs); return n
        f2 = wrap(raw); r2 = timed(lambda: f2(gs), item); ex["raw_fused_adam_us"] = r2["median_us"]
    out(res, **ex)
elif W == "eager_chain":
    a, b = C(np.full(64, 0.1, np.float32)), C(np.full(64, 0.9, np.float32)); x = C(np.linspace(-1, 1, 64).astype(np.float32))
    def chain(y):
        for i in range(100): y = y + a if i % 3 == 0 else (y * b if i % 3 == 1 else tf.tanh(y))
        return y
    def grad(x):
        with tf.GradientTape() as t: t.watch(x); s = tf.reduce_sum(chain(x))
        return t.gradient(s, x)
    f, g = wrap(chain), wrap(grad); r1 = timed(lambda: f(x), sync); r2 = timed(lambda: g(x), sync); out(r2, fwd_us_per_op=r1["median_us"] / 100, fwd_bwd_us_per_op=r2["median_us"] / 100)
elif W == "pipeline":
    xtr, ytr, _, _ = fmnist(); ytr = ytr.astype(np.int64); ex = {}; D = tf.data.Dataset; AT = tf.data.AUTOTUNE
    nm = lambda x, y: ((tf.cast(x, tf.float32) * (1 / 255.) - MEAN) * (1 / STD), y); src = D.from_tensor_slices((xtr, ytr))
    XT, YT = C(xtr), C(ytr)
    def gat(i): return nm(tf.gather(XT, i), tf.gather(YT, i))
    vs = dict(shuffle10k_map_batch=lambda: src.shuffle(10000).map(nm, num_parallel_calls=AT).batch(64).prefetch(AT),
              shuffle10k_batch_map=lambda: src.shuffle(10000).batch(64).map(nm, num_parallel_calls=AT).prefetch(AT),
              shuffle60k_batch_map=lambda: src.shuffle(60000).batch(64).map(nm, num_parallel_calls=AT).prefetch(AT),
              shuffle10k_batch_map_cache=lambda: src.cache().shuffle(10000).batch(64).map(nm, num_parallel_calls=AT).prefetch(AT),
              index_shuffle60k_batch_gather=lambda: D.range(60000).shuffle(60000).batch(64).map(gat, num_parallel_calls=AT).prefetch(AT))
    for k, mk in vs.items():
        d = mk(); rs = []
        for _ in range(4):
            t = time.perf_counter(); n = 0
            for x, y in d: n += int(y.shape[0])
            rs.append(n / (time.perf_counter() - t))
        ex[k] = max(rs[1:])
        @tf.function
        def inside(d):
            s = C(0, tf.int64)
            for x, y in d: s += tf.shape(y, tf.int64)[0]
            return s
        rs = []
        for _ in range(3): t = time.perf_counter(); n = int(inside(d)); rs.append(n / (time.perf_counter() - t))
        ex[k + "_loop_in_function"] = max(rs[1:])
    out(dict(median_us=64e6 / max(ex.values())), samples_per_s=ex)
elif W in ("cold_mlp", "cold_gpt"):
    if W == "cold_mlp": m, opt, st, x, y = cls_setup()
    else: st, x, y = gpt_setup()
    l = item(st(x, y)); out({}, cold_s=time.time() - T0, loss=l)
elif W == "fit":
    xtr, ytr, xte, yte = fmnist(); X, Y, XE, YE = norm_np(xtr).reshape(-1, 784), ytr.astype(np.int64), norm_np(xte).reshape(-1, 784), yte.astype(np.int64)
    from fit_keras import fit
    jit = {"eager": False, "function": "auto", "xla": True}[MODE]; AT = tf.data.AUTOTUNE
    d = tf.data.Dataset.from_tensor_slices((xtr.reshape(-1, 784), Y)).shuffle(60000).batch(64).map(lambda x, y: ((tf.cast(x, tf.float32) * (1 / 255.) - MEAN) * (1 / STD), y), num_parallel_calls=AT).prefetch(AT)
    r = fit(keras, X, Y, XE, YE, jit); r2 = fit(keras, X, Y, XE, YE, jit, data=d); out(r, tfdata=r2["extra"])
elif W == "retrace":
    m, opt, st, x, y = cls_setup(); r = {}
    for b in (64, 64, 48, 48, 80, 80, 96, 96, 112):
        x, y = cls_data((b, 784), 10); x, y = C(x), C(y); t = time.perf_counter(); item(st(x, y)); r.setdefault(str(b), []).append(time.perf_counter() - t)
    out({}, calls_s=r)
elif W == "lstm":
    m = keras.Sequential([L.Input((128, 32)), L.LSTM(64), L.Dense(10)]); opt = keras.optimizers.Adam(1e-3); vs = m.trainable_variables; opt.build(vs); x, y = cls_data((32, 128, 32), 10)
    st = train(m, vs, opt, lambda x, y: xent(y, m(x, training=True))); x, y = C(x), C(y); ex = {}
    res = timed(lambda: st(x, y), item, max_s=20)
    if MODE != "eager":
        try:
            m = keras.Sequential([L.Input((128, 32)), L.LSTM(64, unroll=True), L.Dense(10)]); opt = keras.optimizers.Adam(1e-3); vs = m.trainable_variables; opt.build(vs); st = train(m, vs, opt, lambda x, y: xent(y, m(x, training=True)))
            r2 = timed(lambda: st(x, y), item); ex = dict(unroll_us=r2["median_us"], unroll_first_s=r2["first_call_s"])
        except Exception as e: ex["unroll_err"] = repr(e)[:150]
    out(res, loss=item(st(x, y)), **ex)
else: sys.exit("unknown workload")
