"""PyTorch DistributedDataParallel on CPU processes. python dist_torch.py WORKLOAD [--ranks 2] [--threads 1] [--scaling weak] [--backend gloo|mpi] [--mode eager|compile] [--nosync]"""
import time, os, sys; T0 = float(os.environ.get("T0", time.time()))
from dist_common import *
A = arguments(); A.backend = A.backend or "gloo"; A.mode = A.mode or "eager"
if not rank_main():
    sys.exit(launch(A, "torch", lambda r, n, p: dict(RANK=str(r), WORLD_SIZE=str(n), LOCAL_RANK=str(r), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(p[0]), GLOO_SOCKET_IFNAME="lo")))
import torch, torch.nn as nn, torch.nn.functional as F, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
rank, ranks = int(os.environ["DIST_RANK"]), int(os.environ["DIST_RANKS"]); torch.set_num_threads(A.threads); torch.manual_seed(1); tt = torch.from_numpy
group = ranks > 1 and not A.nosync
if group:
    from datetime import timedelta
    dist.init_process_group(A.backend, timeout=timedelta(seconds=float(os.environ.get("DIST_TIMEOUT", "1800"))))
W = A.workload

def mlp(sizes):
    w = mlp_weights(sizes); ls = []
    for i in range(len(sizes) - 1):
        l = nn.Linear(sizes[i], sizes[i + 1])
        with torch.no_grad(): l.weight.copy_(tt(w[2 * i]).t()); l.bias.copy_(tt(w[2 * i + 1]))
        ls.append(l)
        if i < len(sizes) - 2: ls.append(nn.ReLU())
    return nn.Sequential(*ls)
class Block(nn.Module):
    def __init__(s, D, H):
        super().__init__(); s.H = H
        s.l1, s.l2 = nn.LayerNorm(D), nn.LayerNorm(D); s.qkv = nn.Linear(D, 3 * D); s.o = nn.Linear(D, D); s.u, s.d = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)
    def forward(s, x):
        B, T, D = x.shape
        q, k, v = s.qkv(s.l1(x)).view(B, T, 3, s.H, D // s.H).permute(2, 0, 3, 1, 4).unbind(0)
        x = x + s.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, T, D))
        return x + s.d(F.gelu(s.u(s.l2(x)), approximate="tanh"))
class GPT(nn.Module):
    def __init__(s, L=4, V=65, T=256, D=256, H=8):
        super().__init__(); s.e, s.p = nn.Embedding(V, D), nn.Parameter(torch.zeros(T, D))
        s.b = nn.ModuleList([Block(D, H) for _ in range(L)]); s.n = nn.LayerNorm(D); s.h = nn.Linear(D, V, bias=False); w = iter(gpt_weights(L))
        with torch.no_grad():
            s.e.weight.copy_(tt(next(w))); s.p.copy_(tt(next(w)))
            for m in [m for b in s.b for m in (b.l1, b.qkv, b.o, b.l2, b.u, b.d)] + [s.n, s.h]:
                a = tt(next(w)); m.weight.copy_(a.t() if isinstance(m, nn.Linear) else a)
                if m.bias is not None: m.bias.copy_(tt(next(w)))
    def forward(s, i):
        x = s.e(i) + s.p
        for b in s.b: x = b(x)
        return s.h(s.n(x))
def cnn():
    m = nn.Sequential(nn.Conv2d(1, 32, 3, 1, 1), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(), nn.Conv2d(64, 64, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(3136, 128), nn.ReLU(), nn.Linear(128, 10))
    w = iter(cnn_weights())
    with torch.no_grad():
        for l in m:
            if isinstance(l, nn.Conv2d): l.weight.copy_(tt(next(w)).permute(3, 2, 0, 1)); l.bias.copy_(tt(next(w)))
            if isinstance(l, nn.Linear): l.weight.copy_(tt(next(w)).t()); l.bias.copy_(tt(next(w)))   # the flatten order differs from NHWC's: speed alone is compared
    return m.to(memory_format=torch.channels_last) if A.mode == "channels_last" else m
m = GPT() if W == "gpt" else cnn() if W == "cnn" else mlp(SIZES[W])
x, y = global_batch(W, ranks, A.scaling); x, y = tt(rows(x, rank, ranks).copy()), tt(rows(y, rank, ranks).copy())
if W == "cnn": x = x.permute(0, 3, 1, 2).contiguous(memory_format=torch.channels_last if A.mode == "channels_last" else torch.contiguous_format)
opt = torch.optim.AdamW(m.parameters(), lr=3e-4, weight_decay=.1, eps=1e-8, fused=True) if W == "gpt" else torch.optim.Adam(m.parameters(), lr=mlp_lr(SIZES[W]) if W in SIZES else 1e-3, eps=1e-7, fused=True)
sync = group
d = DDP(m, gradient_as_bucket_view=True, bucket_cap_mb=float(os.environ.get("DIST_BUCKET_MB", "25"))) if sync else m
if sync and os.environ.get("DDP_LOG"): d._set_ddp_runtime_logging_sample_rate(1)
def loss_of(x, y): z = d(x); return F.cross_entropy(z.view(-1, 65), y.reshape(-1)) if W == "gpt" else F.cross_entropy(z, y)
if A.mode == "compile": loss_of = torch.compile(loss_of) if not sync else loss_of; d = torch.compile(d) if sync else d
ps = list(m.parameters())
def step():
    opt.zero_grad(set_to_none=not sync); l = loss_of(x, y); l.backward()
    if W == "gpt": nn.utils.clip_grad_norm_(ps, 1.0)          # after the all-reduce: the norm of the global gradient
    g = opt.param_groups[0]; g["keras_eps"] = g.get("keras_eps", g["eps"]); g["taken"] = g.get("taken", 0) + 1; g["eps"] = corrected_eps(g["keras_eps"], g["taken"]); opt.step(); return l
beside = Beside(); r = timed(step, lambda l: l.item(), beside.agree, beside.barrier, rank, T0); r["parameters"] = sum(p.numel() for p in ps)
if sync:   # what the gradient's all-reduce alone takes: one flat tensor, nothing else running
    t = torch.ones(r["parameters"]); ts = []
    for _ in range(15): dist.barrier(); a = time.perf_counter(); dist.all_reduce(t); ts.append(time.perf_counter() - a); t.fill_(1.)
    r["allreduce_alone_us"] = float(np.median(ts)) * 1e6
    if os.environ.get("DDP_LOG"):
        q = d._get_ddp_logging_data(); r["ddp"] = {k: q[k] for k in q if "time" in k or k in ("bucket_sizes", "num_buckets_reduced", "rebuilt_bucket_sizes")}
print(json.dumps(r), flush=True)
if group: dist.barrier(); dist.destroy_process_group()
