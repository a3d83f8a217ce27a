"""TensorFlow MultiWorkerMirroredStrategy on CPU processes. python dist_tf.py WORKLOAD [--ranks 2] [--threads 1] [--scaling weak] [--backend ring|auto] [--mode keras|raw] [--nosync]
keras: a Keras model and optimizer under strategy.run (the optimizer sums the gradients over replicas; the loss is divided by the global batch by hand).
raw (mlp_tiny, mlp_big): tf.Variable, ReplicaContext.all_reduce, TF's fused Adam kernel."""
import time, os, sys; T0 = float(os.environ.get("T0", time.time()))
from dist_common import *
A = arguments(); A.backend = A.backend or "ring"; A.mode = A.mode or "keras"
def environment(r, n, p):
    if n == 1 or A.nosync: return dict(TF_CPP_MIN_LOG_LEVEL="2")
    return dict(TF_CPP_MIN_LOG_LEVEL=os.environ.get("TF_CPP_MIN_LOG_LEVEL", "2"), TF_CONFIG=json.dumps(dict(cluster=dict(worker=["127.0.0.1:%d" % q for q in p[:n]]), task=dict(type="worker", index=r))))
if not rank_main(): sys.exit(launch(A, "tf", environment))
import tensorflow as tf
tf.config.threading.set_intra_op_parallelism_threads(A.threads); tf.config.threading.set_inter_op_parallelism_threads(A.threads if not os.environ.get("DIST_INTER") else int(os.environ["DIST_INTER"]))
rank, ranks = int(os.environ["DIST_RANK"]), int(os.environ["DIST_RANKS"]); W = A.workload; group = ranks > 1 and not A.nosync
if group:
    how = dict(ring=tf.distribute.experimental.CommunicationImplementation.RING, auto=tf.distribute.experimental.CommunicationImplementation.AUTO)[A.backend]
    kw = dict(timeout_seconds=float(os.environ["DIST_TIMEOUT"])) if os.environ.get("DIST_TIMEOUT") else {}
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=tf.distribute.experimental.CommunicationOptions(implementation=how, **kw))
else: strategy = tf.distribute.get_strategy()
import keras
L = keras.layers; C = tf.constant; keras.utils.set_random_seed(1)
x, y = global_batch(W, ranks, A.scaling); y = y.astype(np.int32); x = x.astype(np.int32) if W == "gpt" else x
GLOBAL = len(x) if group else len(x) // ranks; x, y = rows(x, rank, ranks), rows(y, rank, ranks)
B = len(x)
def xent(y, z): return tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=z)) / (GLOBAL * (256 if W == "gpt" else 1))   # a part of the global mean: the sum over replicas is it
def raw_adam(vs, lr, b1=.9, b2=.999, eps=1e-7):
    ms = [tf.Variable(tf.zeros_like(v)) for v in vs]; us = [tf.Variable(tf.zeros_like(v)) for v in vs]; t = tf.Variable(0.0)
    def apply(gs):
        t.assign_add(1.0); a = lr * tf.sqrt(1 - tf.pow(b2, t)) / (1 - tf.pow(b1, t))
        for v, m, u, g in zip(vs, ms, us, gs):
            m.assign(m * b1 + (1 - b1) * g); u.assign(u * b2 + (1 - b2) * g * g); v.assign_sub(a * m / (tf.sqrt(u) + eps))
    return apply
with strategy.scope():
    if W == "cnn":
        cv = lambda n, s=1: L.Conv2D(n, 3, strides=s, padding="same", activation="relu")
        m = keras.Sequential([L.Input((28, 28, 1)), cv(32), cv(64, 2), cv(64), L.MaxPooling2D(2), L.Flatten(), L.Dense(128, activation="relu"), L.Dense(10)]); m.set_weights(cnn_weights()); vs = m.trainable_variables; forward = lambda x: m(x, training=True)
    elif W != "gpt":
        sizes = SIZES[W]; m = keras.Sequential([L.Input((784,))] + [L.Dense(n, activation="relu" if k < len(sizes) - 2 else None) for k, n in enumerate(sizes[1:])]); m.set_weights(mlp_weights(sizes)); vs = m.trainable_variables; forward = lambda x: m(x, training=True)
    else:
        V, T, D, H = 65, 256, 256, 8; vs = [tf.Variable(a) for a in gpt_weights(4)]; mask = C(np.where(np.tril(np.ones((T, T))) > 0, 0, -1e9).astype(np.float32))
        def ln(x, g, b): mu, v = tf.nn.moments(x, -1, keepdims=True); return (x - mu) * tf.math.rsqrt(v + 1e-5) * g + b
        def lin(x, w, b=None): s = x.shape; z = tf.matmul(tf.reshape(x, (-1, s[-1])), w); z = z if b is None else tf.nn.bias_add(z, b); return tf.reshape(z, s[:-1] + [w.shape[1]])
        def forward(i):
            x = tf.gather(vs[0], i) + vs[1]
            for k in range(4):
                g1, c1, qkv, qb, o, ob, g2, c2, u, ub, d, db = vs[2 + 12 * k:14 + 12 * k]
                q, kk, v = tf.unstack(tf.transpose(tf.reshape(lin(ln(x, g1, c1), qkv, qb), (B, T, 3, H, D // H)), (2, 0, 3, 1, 4)), axis=0)
                a = tf.matmul(tf.nn.softmax(tf.matmul(q, kk, transpose_b=True) * ((D // H) ** -0.5) + mask), v)
                x = x + lin(tf.reshape(tf.transpose(a, (0, 2, 1, 3)), (B, T, D)), o, ob); x = x + lin(tf.nn.gelu(lin(ln(x, g2, c2), u, ub), approximate=True), d, db)
            return lin(ln(x, vs[-3], vs[-2]), vs[-1])
    raw = A.mode == "raw"
    lr = 3e-4 if W == "gpt" else mlp_lr(SIZES[W]) if W in SIZES else 1e-3
    if raw: apply = raw_adam([v.value if hasattr(v, "value") and not callable(v.value) else v for v in vs], lr)
    else:   # Keras clips each replica's own gradient before the sum, so a true global clip is done by hand below
        opt = keras.optimizers.AdamW(lr, weight_decay=.1, epsilon=1e-8) if W == "gpt" else keras.optimizers.Adam(lr); opt.build(vs)
def replica(x, y):
    with tf.GradientTape() as tape: l = xent(y, forward(x))
    g = [tf.convert_to_tensor(q) for q in tape.gradient(l, vs)]
    if group and (raw or W == "gpt"): g = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, g)
    if W == "gpt":
        g, _ = tf.clip_by_global_norm(g, 1.0)
        if group and not raw: g = [q / ranks for q in g]     # Keras sums again over replicas; see below
    apply(g) if raw else opt.apply_gradients(zip(g, vs)); return l
if group and W == "gpt" and not raw:   # one all-reduce, not two: the optimizer's own is taken out
    opt._all_reduce_sum_gradients = lambda gv: [(q * ranks, v) for q, v in gv]
x, y = C(x), C(y)
if group:
    f = tf.function(lambda: strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(replica, (x, y)), axis=None) if os.environ.get("DIST_REDUCE_LOSS") else strategy.run(replica, (x, y)))
else: f = tf.function(lambda: replica(x, y))
item = lambda l: float(l.numpy() if hasattr(l, "numpy") else strategy.experimental_local_results(l)[0].numpy()) * (GLOBAL / B)
step = lambda: f()
beside = Beside(); r = timed(step, item, beside.agree, beside.barrier, rank, T0); r["parameters"] = int(sum(np.prod(v.shape) for v in vs))
if group:
    flat = tf.ones([r["parameters"]]); ar = tf.function(lambda: strategy.run(lambda: tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, flat))); ts = []
    for _ in range(15): beside.barrier(); a = time.perf_counter(); ar(); ts.append(time.perf_counter() - a)
    r["allreduce_alone_us"] = float(np.median(ts)) * 1e6
print(json.dumps(r), flush=True); beside.barrier(); os._exit(0)
