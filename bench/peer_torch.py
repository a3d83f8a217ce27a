import time; _t = time.time()
import os, sys
os.environ.setdefault("OMP_NUM_THREADS", "2"); os.environ.setdefault("MKL_NUM_THREADS", "2")
import torch, torch.nn as nn, torch.nn.functional as F
torch.set_num_threads(2)
IMPORT = time.time() - _t
T0 = float(os.environ.get("T0", _t))
from peer_protocol import *
W, MODE = sys.argv[1], sys.argv[2]
COMP = MODE == "compile"
CL = MODE == "channels_last"
torch.manual_seed(1)
tt = torch.from_numpy

def maybe_compile(f): return torch.compile(f) if COMP else f

def mlp(sizes, act=nn.ReLU):
    w = mlp_weights(sizes); ls = []
    for i in range(len(sizes) - 1):
        l = nn.Linear(sizes[i], sizes[i + 1])
        with torch.no_grad(): l.weight.copy_(tt(w[2 * i]).t()); l.bias.copy_(tt(w[2 * i + 1]))
        ls.append(l)
        if i < len(sizes) - 2: ls.append(act())
    return nn.Sequential(*ls)

class DWSep(nn.Module):
    def __init__(s):
        super().__init__()
        bn = lambda c: nn.BatchNorm2d(c, eps=1e-3, momentum=0.01)
        L = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), bn(32), nn.ReLU()]; c = 32
        for ch, st in DW:
            L += [nn.Conv2d(c, c, 3, st, 1, groups=c, bias=False), bn(c), nn.ReLU(), nn.Conv2d(c, ch, 1, bias=False), bn(ch), nn.ReLU()]; c = ch
        s.f = nn.Sequential(*L); s.h = nn.Linear(c, 10)
    def forward(s, x): return s.h(s.f(x).mean((2, 3)))

class Block(nn.Module):
    def __init__(s, D, H):
        super().__init__(); s.H = H
        s.l1, s.l2 = nn.LayerNorm(D), nn.LayerNorm(D); s.qkv = nn.Linear(D, 3 * D); s.o = nn.Linear(D, D)
        s.u, s.d = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)
    def forward(s, x):
        B, T, D = x.shape
        q, k, v = s.qkv(s.l1(x)).view(B, T, 3, s.H, D // s.H).permute(2, 0, 3, 1, 4).unbind(0)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, T, D)
        return s.rest(x, a)
    def rest(s, x, a):
        x = x + s.o(a)
        return x + s.d(F.gelu(s.u(s.l2(x)), approximate="tanh"))
    def one(s, x, attend):   # x [B, 1, D]; attend(q, k, v) keeps keys and values
        B, _, D = x.shape; q, k, v = s.qkv(s.l1(x)).view(B, 1, 3, s.H, D // s.H).permute(2, 0, 3, 1, 4).unbind(0)
        return s.rest(x, attend(q, k, v).transpose(1, 2).reshape(B, 1, D))
class GPTm(nn.Module):
    def __init__(s, L, V=65, T=256, D=256, H=8, weights=None):
        super().__init__()
        s.e, s.p = nn.Embedding(V, D), nn.Parameter(torch.zeros(T, D))
        s.b = nn.ModuleList([Block(D, H) for _ in range(L)]); s.n = nn.LayerNorm(D); s.h = nn.Linear(D, V, bias=False)
        w = iter(weights or gpt_weights(L))
        with torch.no_grad():
            s.e.weight.copy_(tt(next(w))); s.p.copy_(tt(next(w)))
            for m in [m for b in s.b for m in (b.l1, b.qkv, b.o, b.l2, b.u, b.d)] + [s.n, s.h]:
                a = tt(next(w)); m.weight.copy_(a.t() if isinstance(m, nn.Linear) else a)
                if m.bias is not None: m.bias.copy_(tt(next(w)))
    def forward(s, i):
        x = s.e(i) + s.p
        for b in s.b: x = b(x)
        return s.h(s.n(x))

def update(opt):
    """A step with Keras's eps, whatever the form of torch's Adam."""
    group = opt.param_groups[0]
    if "eps" in group:
        group["keras_eps"] = group.get("keras_eps", group["eps"]); group["taken"] = group.get("taken", 0) + 1
        group["eps"] = corrected_eps(group["keras_eps"], group["taken"])
    opt.step()
def train_step(model, loss_of, opt, clip=None, bf16=False):
    """loss_of(x, y) is (maybe) compiled; optimizer is torch's fused CPU one; clip is clip_grad_norm_."""
    ps = list(model.parameters())
    def step(x, y):
        opt.zero_grad(set_to_none=True)
        if bf16:
            with torch.autocast("cpu", dtype=torch.bfloat16): loss = loss_of(x, y)
        else: loss = loss_of(x, y)
        loss.backward()
        if clip: nn.utils.clip_grad_norm_(ps, clip)
        update(opt); return loss
    return step

item = lambda l: l.item()
def cls_setup(batch=64, sizes=(784, 128, 10), bf16=False, fused=True):
    x, y = cls_data((batch, sizes[0]), 10); x, y = tt(x), tt(y)
    m = mlp(sizes); opt = torch.optim.Adam(m.parameters(), lr=mlp_lr(sizes), eps=1e-7, fused=fused)
    lf = maybe_compile(lambda x, y: F.cross_entropy(m(x).float() if bf16 else m(x), y))
    return m, opt, train_step(m, lf, opt, bf16=bf16), x, y, lf
def gpt_setup(L=4, bf16=False):
    i, t = map(tt, gpt_data()); m = GPTm(L)
    opt = torch.optim.AdamW(m.parameters(), lr=3e-4, weight_decay=0.1, eps=1e-8, fused=True)
    lf = maybe_compile(lambda x, y: F.cross_entropy(m(x).float().view(-1, 65), y.reshape(-1)))
    st = train_step(m, lf, opt, clip=1.0, bf16=bf16)
    return st, i, t

def out(res, **kw): emit("torch", MODE, W, IMPORT, res, **kw)

if W in ("pipeline", "images", "fit", "retrace"): quiet()
if W.startswith("mlp_tiny"):
    b = int(W[len("mlp_tiny_b"):]) if "_b" in W else 64
    m, opt, st, x, y, lf = cls_setup(b)
    res = timed(lambda: st(x, y), item); ex = dict(loss=st(x, y).item())
    if b == 64:
        m, opt, st, x, y, lf = cls_setup(b, fused=False); ex["unfused_adam_us"] = timed(lambda: st(x, y), item, min_s=1)["median_us"]
        if COMP:   # whole-step variant: optimizer compiled too
            m, opt, st, x, y, lf = cls_setup(b, fused=False); co = torch.compile(lambda: opt.step())
            def st2():
                opt.zero_grad(set_to_none=True); l = lf(x, y); l.backward(); co(); return l
            try: r2 = timed(st2, item, min_s=1); ex["compiled_opt_us"] = r2["median_us"]; ex["compiled_opt_first_s"] = r2["first_call_s"]
            except Exception as e: ex["compiled_opt_err"] = repr(e)[:150]
    out(res, **ex)
elif W == "predict_b1":
    m = mlp((784, 128, 10)); x = tt(cls_data((1, 784), 10)[0]); f = maybe_compile(lambda x: m(x))
    def predict():
        with torch.inference_mode(): return f(x)
    out(timed(predict, lambda r: r[0, 0].item()))
elif W in ("mlp_big", "mlp_big_bf16"):
    m, opt, st, x, y, lf = cls_setup(256, (784, 2048, 2048, 10), bf16=W.endswith("bf16"))
    res = timed(lambda: st(x, y), item); out(res, loss=st(x, y).item())
elif W == "cnn":
    x, y = cls_data((64, 1, 28, 28), 10); x, y = tt(x), tt(y)
    m = nn.Sequential(nn.Conv2d(1, 32, 3, 1, 1), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(), nn.Conv2d(64, 64, 3, 1, 1), nn.ReLU(),
                      nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3136, 128), nn.ReLU(), nn.Linear(128, 10))
    if CL: m = m.to(memory_format=torch.channels_last); x = x.to(memory_format=torch.channels_last)
    opt = torch.optim.Adam(m.parameters(), lr=1e-3, eps=1e-7, fused=True)
    st = train_step(m, maybe_compile(lambda x, y: F.cross_entropy(m(x), y)), opt)
    res = timed(lambda: st(x, y), item); out(res, loss=st(x, y).item())
elif W == "dwsep":
    x, y = cls_data((64, 3, 32, 32), 10); x, y = tt(x), tt(y); m = DWSep().train()
    if CL: m = m.to(memory_format=torch.channels_last); x = x.to(memory_format=torch.channels_last)
    opt = torch.optim.SGD(m.parameters(), lr=0.01, momentum=0.9, fused=True)
    st = train_step(m, maybe_compile(lambda x, y: F.cross_entropy(m(x), y)), opt)
    res = timed(lambda: st(x, y), item); out(res, loss=st(x, y).item())
elif W.startswith("gpt"):
    L = int(W[5:]) if W.startswith("gpt_l") else 4
    st, i, t = gpt_setup(L, bf16=W.endswith("bf16"))
    if W.startswith("gpt_l"): res = timed(lambda: st(i, t), item, min_s=2, min_rep=8, warm=3)
    else: res = timed(lambda: st(i, t), item)
    out(res, loss=st(i, t).item())
elif W.startswith("generate"):
    V, T, D, H, L = GENERATE.values(); B = 8 if W.endswith("b8") else 1; m = GPTm(L, V, T, D, H, generate_weights()).eval()
    logits = lambda x: m.h(m.n(x))[:, 0].argmax(-1)
    K, Z = ([torch.zeros(B, H, T, D // H) for _ in range(L)] for _ in range(2)); idx = torch.arange(T); sdpa = F.scaled_dot_product_attention
    def sliced(t, k):   # as far as the places are known
        x = (m.e(t) + m.p[k])[:, None]
        for b, c, z in zip(m.b, K, Z):
            def attend(q, a, v): c[:, :, k:k + 1] = a; z[:, :, k:k + 1] = v; return sdpa(q, c[:, :, :k + 1], z[:, :, :k + 1])
            x = b.one(x, attend)
        return logits(x)
    def masked(t, k):    # all places with a mask: one size, which compiles once
        x = (m.e(t) + m.p[k])[:, None]; mask = (idx <= k)[None, None, None]
        for b, c, z in zip(m.b, K, Z):
            def attend(q, a, v): c.index_copy_(2, k, a); z.index_copy_(2, k, v); return sdpa(q, c, z, attn_mask=mask)
            x = b.one(x, attend)
        return logits(x)
    def grown(t, k):
        x = (m.e(t) + m.p[k])[:, None]
        for j, b in enumerate(m.b):
            def attend(q, a, v): K[j] = torch.cat((K[j], a), 2); Z[j] = torch.cat((Z[j], v), 2); return sdpa(q, K[j], Z[j])
            x = b.one(x, attend)
        return logits(x)
    grows = W == "generate_growing"; one = grown if grows else torch.compile(masked) if COMP else sliced
    place = (lambda k: torch.tensor([k])) if COMP else (lambda k: k); made = Tokens(B)
    def begin():
        if grows: K[:] = [torch.zeros(B, H, 0, D // H)] * L; Z[:] = K
    def token():
        with torch.inference_mode(): made.step(begin, lambda k, t: one(torch.tensor(t), place(k)).tolist())
    res = timed(token, lambda r: None); out(res, sum_of_tokens=made.first_sum(token))
elif W == "jacobian":
    from torch.func import vmap, jacrev
    m = mlp((64, 256, 256, 10), nn.Tanh); w = [p.detach() for p in m.parameters()]
    x = tt(cls_data((8192, 64), 10)[0])
    def f(x): h = torch.tanh(F.linear(x, w[0], w[1])); h = torch.tanh(F.linear(h, w[2], w[3])); return F.linear(h, w[4], w[5])
    g = maybe_compile(vmap(jacrev(f)))
    ex = {}
    try:
        res = timed(lambda: g(x), lambda r: r[0, 0, 0].item()); ex["how"] = "vmap(jacrev)"; J = g(x); ex["sumabs"] = J.abs().sum().item(); assert J.shape == (8192, 10, 64)
    except Exception as e: res = {}; ex["err"] = repr(e)[:200]
    if not COMP:
        def loop():
            xx = x.detach().requires_grad_(True); o = f(xx).sum(0); J = torch.empty(8192, 10, 64)
            for k in range(10): J[:, k] = torch.autograd.grad(o[k], xx, retain_graph=k < 9)[0]
            return J
        r2 = timed(loop, lambda r: r[0, 0, 0].item()); ex["loop10_us"] = r2["median_us"]
    out(res, **ex)
elif W == "input_grad":
    m = mlp((784, 512, 512, 1)); [p.requires_grad_(False) for p in m.parameters()]
    x = tt(cls_data((65536, 784), 10)[0]).requires_grad_(True); f = maybe_compile(lambda x: m(x).sum())
    res = timed(lambda: torch.autograd.grad(f(x), x)[0], lambda r: r[0, 0].item(), min_rep=12, warm=2); out(res)
elif W == "pegn":
    from torch.func import vmap, grad
    m = mlp((784, 128, 10)); w = tuple(p.detach() for p in m.parameters())
    x, y = cls_data((1024, 784), 10); x, y = tt(x), tt(y)
    def l1(w, x, y): return F.cross_entropy(F.linear(F.relu(F.linear(x, w[0], w[1])), w[2], w[3])[None], y[None])
    def f(x, y):
        g = vmap(grad(l1), (None, 0, 0))(w, x, y); return sum(q.flatten(1).square().sum(1) for q in g).sqrt()
    g = maybe_compile(f); res = timed(lambda: g(x, y), lambda r: r[0].item()); out(res, sum=g(x, y).sum().item())
elif W == "accumulate":
    m, opt, st, _, _, lf = cls_setup(128, (784, 2048, 2048, 10)); x, y = cls_data((1024, 784), 10)
    xs, ys = tt(x).chunk(8), tt(y).chunk(8)
    def step():
        opt.zero_grad(set_to_none=True); t = 0
        for a, b in zip(xs, ys): l = lf(a, b) / 8; l.backward(); t = t + l.detach()
        update(opt); return t
    res = timed(step, item); out(res, loss=step().item())
elif W == "adamw_update":
    rng = np.random.default_rng(0); ps = [nn.Parameter(tt(rng.standard_normal(s, dtype=np.float32) * 0.02)) for s in ADAMW_SHAPES]
    for p in ps: p.grad = tt(rng.standard_normal(p.shape, dtype=np.float32) * 0.01)
    res = {}; ex = {}
    if not COMP:
        best = None
        for name, kw, fe in (("fused", dict(fused=True), None), ("fused+foreach_clip", dict(fused=True), True), ("foreach", dict(foreach=True), True), ("default", {}, None)):
            opt = torch.optim.AdamW(ps, lr=3e-4, weight_decay=0.1, **kw)
            def step(): n = nn.utils.clip_grad_norm_(ps, 1.0, foreach=fe); opt.step(); return n
            r = timed(step, item); ex[name + "_us"] = r["median_us"]
            if best is None or r["median_us"] < best["median_us"]: best = r; ex["how"] = name
        res = best
    else:
        opt = torch.optim.AdamW(ps, lr=3e-4, weight_decay=0.1)
        def stepf(): n = nn.utils.clip_grad_norm_(ps, 1.0); opt.step(); return n
        step = torch.compile(stepf); res = timed(step, item)
    out(res, **ex)
elif W == "table_update":
    table, dense = nn.Embedding(1000000, 64, sparse=True), nn.Linear(64, 1)
    x, y = torch.randint(1000000, (512, 8)), torch.rand(512, 1)
    opts = [torch.optim.SparseAdam(list(table.parameters()), 1e-3), torch.optim.Adam(dense.parameters(), 1e-3)]
    def step():
        for o in opts: o.zero_grad(set_to_none=True)
        loss = F.mse_loss(dense(table(x).mean(1)), y); loss.backward()
        for o in opts: o.step()
        return loss
    out(timed(step, item))
elif W == "eager_chain":
    a, b = torch.full((64,), 0.1), torch.full((64,), 0.9); x = torch.linspace(-1, 1, 64)
    def chain(y):
        for i in range(100): y = y + a if i % 3 == 0 else (y * b if i % 3 == 1 else torch.tanh(y))
        return y
    xr = x.clone().requires_grad_(True)
    c = maybe_compile(chain)
    def fwd():
        with torch.no_grad(): return c(x)
    r1 = timed(fwd, lambda r: r); r2 = timed(lambda: torch.autograd.grad(c(xr).sum(), xr)[0], lambda r: r)
    res = r2; out(res, fwd_us_per_op=r1["median_us"] / 100, fwd_bwd_us_per_op=r2["median_us"] / 100,
        fwd_mean_us_per_op=r1["extra"]["mean_us"] / 100, fwd_bwd_mean_us_per_op=r2["extra"]["mean_us"] / 100, grad0=r2 and torch.autograd.grad(c(xr).sum(), xr)[0][0].item())
elif W == "pipeline":
    from torch.utils.data import Dataset, DataLoader, TensorDataset, BatchSampler, RandomSampler
    xtr, ytr, _, _ = fmnist(); X, Y = tt(xtr.copy()), tt(ytr.astype(np.int64))
    class Item(Dataset):
        def __len__(s): return 60000
        def __getitem__(s, i): return (X[i].float() * (1 / 255.) - MEAN) * (1 / STD), Y[i]
    class Bat(Dataset):
        def __len__(s): return 60000
        def __getitem__(s, i): i = torch.as_tensor(i); return (X[i].float() * (1 / 255.) - MEAN) * (1 / STD), Y[i]
    def epoch(dl):
        n = 0; t = time.perf_counter()
        for x, y in dl: n += len(y)
        return n / (time.perf_counter() - t)
    ex = {}
    for nm, mk in (("item_w0", lambda: DataLoader(Item(), 64, shuffle=True)), ("item_w2", lambda: DataLoader(Item(), 64, shuffle=True, num_workers=2, persistent_workers=True, prefetch_factor=4)),
                   ("batched_w0", lambda: DataLoader(Bat(), None, sampler=BatchSampler(RandomSampler(range(60000)), 64, False))),
                   ("batched_w2", lambda: DataLoader(Bat(), None, sampler=BatchSampler(RandomSampler(range(60000)), 64, False), num_workers=2, persistent_workers=True, prefetch_factor=4))):
        dl = mk(); v = [epoch(dl) for _ in range(4)]; ex[nm] = max(v[1:]); del dl
    def byhand():
        t = time.perf_counter(); p = torch.randperm(60000); n = 0
        for k in range(0, 60000, 64): i = p[k:k + 64]; x = (X[i].float() * (1 / 255.) - MEAN) * (1 / STD); y = Y[i]; n += len(y)
        return n / (time.perf_counter() - t)
    ex["by_hand_no_loader"] = max(byhand() for _ in range(4)); best = max(v for k, v in ex.items() if k != "by_hand_no_loader")
    out(dict(median_us=64e6 / best), samples_per_s=ex)
elif W == "images":  # files that gradus_bench has made
    import tempfile, torchvision
    from torch.utils.data import DataLoader
    from torchvision.transforms import v2
    root = os.environ.get("BENCH_IMAGES") or os.path.join(tempfile.gettempdir(), "gradus_bench_images")
    if not os.path.isdir(root): sys.exit(f"images: {root} is missing; gradus_bench images makes it")
    decode = lambda path: torchvision.io.decode_jpeg(torchvision.io.read_file(path), mode=torchvision.io.ImageReadMode.RGB)
    resize, scale = v2.Resize((160, 160), antialias=False), v2.ToDtype(torch.float32, scale=True)
    change = [v2.RandomHorizontalFlip(), v2.RandomRotation(18, interpolation=v2.InterpolationMode.BILINEAR), v2.ColorJitter(contrast=0.2)]
    def loader(steps, workers):
        kept = dict(persistent_workers=True, prefetch_factor=4, worker_init_fn=lambda _: torch.set_num_threads(1)) if workers else {}
        return DataLoader(torchvision.datasets.ImageFolder(root, v2.Compose(steps), loader=decode), 32, shuffle=True, num_workers=workers, **kept)
    def epoch(dl):
        n = 0; t = time.perf_counter()
        for x, y in dl: n += len(y)
        return n / (time.perf_counter() - t)
    ex = {}
    for nm, steps, workers in (("plain", [resize, scale], 2), ("w2", [resize, *change, scale], 2), ("w0", [resize, *change, scale], 0)):
        dl = loader(steps, workers); v = [epoch(dl) for _ in range(4)]; ex[nm] = max(v[1:]); del dl
    out(dict(median_us=32e6 / max(ex["w2"], ex["w0"])), samples_per_s=ex)
elif W in ("cold_mlp", "cold_gpt"):
    if W == "cold_mlp": m, opt, st, x, y, lf = cls_setup(64)
    else: st, x, y = gpt_setup(4)
    l = st(x, y).item(); out({}, cold_s=time.time() - T0, loss=l)
elif W == "fit":
    from torch.utils.data import TensorDataset, DataLoader
    xtr, ytr, xte, yte = fmnist(); X, Y = tt(norm_np(xtr).reshape(-1, 784)), tt(ytr.astype(np.int64)); XE, YE = tt(norm_np(xte).reshape(-1, 784)), tt(yte.astype(np.int64))
    ex = {}
    for nm in ("loader", "by_hand"):
        m = mlp((784, 128, 10)); opt = torch.optim.Adam(m.parameters(), lr=1e-3, eps=1e-7, fused=True); st = train_step(m, maybe_compile(lambda x, y: F.cross_entropy(m(x), y)), opt)
        dl = DataLoader(TensorDataset(X, Y), 64, shuffle=True, drop_last=True); ts = []
        for e in range(5):
            t = time.perf_counter(); tot = 0.0
            if nm == "loader":
                for x, y in dl: tot += st(x, y).item()
            else:
                p = torch.randperm(60000)
                for k in range(0, 59968, 64): i = p[k:k + 64]; tot += st(X[i], Y[i]).item()
            ts.append(time.perf_counter() - t)
        with torch.no_grad(): acc = (m(XE).argmax(1) == YE).float().mean().item()
        ex[nm] = dict(epoch_s=sorted(ts[1:])[len(ts[1:]) // 2], first_epoch_s=ts[0], test_acc=acc)
    out(dict(median_us=ex["by_hand"]["epoch_s"] * 1e6), **ex)
elif W == "retrace":
    m, opt, st, x, y, lf = cls_setup(64); r = {}
    for b in (64, 64, 48, 48, 80, 80, 96, 96, 112):
        x, y = cls_data((b, 784), 10); x, y = tt(x), tt(y); t = time.perf_counter(); st(x, y).item(); r.setdefault(str(b), []).append(time.perf_counter() - t)
    out({}, calls_s=r)
elif W == "lstm":
    class M(nn.Module):
        def __init__(s): super().__init__(); s.l = nn.LSTM(32, 64, batch_first=True); s.d = nn.Linear(64, 10)
        def forward(s, x): return s.d(s.l(x)[0][:, -1])
    m = M(); opt = torch.optim.Adam(m.parameters(), lr=1e-3, eps=1e-7, fused=True); x, y = cls_data((32, 128, 32), 10); x, y = tt(x), tt(y)
    st = train_step(m, maybe_compile(lambda x, y: F.cross_entropy(m(x), y)), opt); res = timed(lambda: st(x, y), item); out(res, loss=st(x, y).item())
else: sys.exit("unknown workload")
