"""Shared by dist_torch.py, dist_jax.py, dist_tf.py: launching ranks on 127.0.0.1, one timing loop, bytes on loopback.

The data, weights and rules are those of bench/WORKLOADS.md (peer_protocol.py).
A launcher process starts RANKS copies of the script and prints one JSON line; the ranks talk over loopback only."""
import os, sys, json, time, socket, subprocess, argparse, signal
sys.dont_write_bytecode = True   # leave the folder of peer_protocol.py as it is
from peer_protocol import np, quiet, _cpu, hwm_mb, mlp_weights, mlp_lr, cls_data, glorot, gpt_weights, gpt_data, corrected_eps

BATCH = dict(mlp_tiny=64, mlp_big=256, cnn=64, gpt=8)
SIZES = dict(mlp_tiny=(784, 128, 10), mlp_big=(784, 2048, 2048, 10))
MIN_S = float(os.environ.get("BAR_MIN_S", "2")); MIN_REP = int(os.environ.get("BAR_MIN_REP", "12")); MAX_S = float(os.environ.get("BAR_MAX_S", "14"))

def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("workload", choices=list(BATCH)); p.add_argument("--mode", default=None)
    p.add_argument("--ranks", type=int, default=1); p.add_argument("--threads", type=int, default=1)
    p.add_argument("--scaling", choices=("strong", "weak"), default="strong", help="strong: the workload's batch split; weak: the workload's batch for each rank")
    p.add_argument("--nosync", action="store_true", help="the same ranks at the same time, nothing exchanged: what is left is the cost of communication")
    p.add_argument("--backend", default=None)
    p.add_argument("--limit", type=float, default=110)
    return p.parse_args()

def global_batch(w, ranks, scaling, nhwc=True):
    """The whole batch of a step; a rank takes its rows."""
    b = BATCH[w] * (ranks if scaling == "weak" else 1)
    if w == "gpt":
        t = np.random.default_rng(0).integers(0, 65, (b, 257)); x, y = t[:, :-1].astype(np.int64), t[:, 1:].astype(np.int64)
    else: x, y = cls_data(dict(cnn=(b, 28, 28, 1)).get(w, (b, 784)), 10)
    return x, y
def rows(a, rank, ranks): n = len(a) // ranks; assert n * ranks == len(a); return a[rank * n:(rank + 1) * n]

def cnn_weights():
    r = np.random.default_rng(1); w = []
    for ci, co in ((1, 32), (32, 64), (64, 64)): w += [glorot(r, 9 * ci, 9 * co, (3, 3, ci, co)), np.zeros(co, np.float32)]
    return w + mlp_weights((3136, 128, 10))

def loopback_bytes():
    for l in open("/proc/net/dev"):
        if l.strip().startswith("lo:"): f = l.split(":")[1].split(); return int(f[8]), int(f[9])   # sent bytes, packets
def free_ports(n):
    ss = [socket.socket() for _ in range(n)]
    for s in ss: s.bind(("127.0.0.1", 0))
    ps = [s.getsockname()[1] for s in ss]
    for s in ss: s.close()
    return ps

class Beside:
    """Agreement among ranks about the number of steps, and a barrier, beside the framework's own communication."""
    def __init__(s):
        s.rank, s.ranks, s.peers = int(os.environ["DIST_RANK"]), int(os.environ["DIST_RANKS"]), []
        at = ("127.0.0.1", int(os.environ["DIST_BESIDE"]))
        if s.ranks == 1: return
        if s.rank == 0:
            l = socket.create_server(at, backlog=16)
            for _ in range(s.ranks - 1): s.peers.append(l.accept()[0])
        else:
            for _ in range(600):
                try: s.peers = [socket.create_connection(at)]; break
                except OSError: time.sleep(0.05)
    def agree(s, n):
        """rank 0's n, after everybody has come"""
        if s.rank == 0:
            for p in s.peers: p.recv(1)
            for p in s.peers: p.sendall(int(n).to_bytes(8, "little"))
            return n
        s.peers[0].sendall(b"x"); return int.from_bytes(s.peers[0].recv(8, socket.MSG_WAITALL), "little")
    def barrier(s): s.agree(0)

def timed(step, item, agree, barrier, rank, t0):
    """agree(n): rank 0's n everywhere. step() one training step, item(handle) the loss on the host."""
    pc = time.perf_counter; losses = []
    a = pc(); losses.append(item(step())); first = pc() - a; ready = time.time() - t0
    w = []
    for _ in range(int(os.environ.get("DIST_WARM", "5"))): a = pc(); losses.append(item(step())); w.append(pc() - a)
    est = sorted(w)[len(w) // 2]; n = int(min(max(MIN_S / est, MIN_REP), max(MAX_S / est, 3))); n = agree(n)
    barrier(); c0 = _cpu(); b0 = loopback_bytes(); q0 = pc(); ts = []
    for _ in range(n):
        a = pc(); v = item(step()); ts.append(pc() - a)
        if len(losses) <= 20: losses.append(v)
    wall = pc() - q0; b1 = loopback_bytes(); c1 = _cpu()
    k = agree(max(0, 21 - len(losses)) if os.environ.get("DIST_LOSSES", "1") == "1" else 0)
    for _ in range(k): losses.append(item(step()))
    ts = np.array(ts)
    return dict(median_us=float(np.median(ts)) * 1e6, min_us=float(ts.min()) * 1e6, p90_us=float(np.percentile(ts, 90)) * 1e6, reps=n, first_call_s=first,
                exec_to_first_step_s=ready, first_loss=losses[0], loss_after_20=losses[20] if len(losses) > 20 else None, lo_bytes_per_step=(b1[0] - b0[0]) / n, lo_packets_per_step=(b1[1] - b0[1]) / n,
                busy_cores=(c1[0] - c0[0]) / wall, own_cores=(c1[1] - c0[1]) / wall, steal=(c1[2] - c0[2]) / wall, peak_rss_mb=round(hwm_mb()))

def launch(args, framework, environment, pin=False):
    """environment(rank, ranks, ports) -> dict. Waits for all ranks; the result is the slowest rank's, with all ranks' medians."""
    ranks = args.ranks; ports = free_ports(ranks + 2); t0 = time.time(); ps = []
    quiet(0.8)
    t0 = time.time()
    for r in range(ranks):
        e = dict(os.environ, DIST_RANK=str(r), DIST_RANKS=str(ranks), DIST_BESIDE=str(ports[-1]), T0=repr(t0), OMP_NUM_THREADS=str(args.threads), MKL_NUM_THREADS=str(args.threads))
        e.update(environment(r, ranks, ports))
        argv = [sys.executable, sys.argv[0]] + sys.argv[1:]
        pre = ["taskset", "-c", str(r % (os.cpu_count() or 1))] if pin and args.threads == 1 else []   # the only way to give XLA one thread
        ps.append(subprocess.Popen(pre + argv, env=e, stdout=subprocess.PIPE, stderr=open("%s.%d.err" % (os.environ.get("DIST_LOG", "dist_err"), r), "w"), text=True))
    outs = []
    try:
        for p in ps: outs.append(p.communicate(timeout=max(1, args.limit - (time.time() - t0)))[0])
    except subprocess.TimeoutExpired: outs = None
    for p in ps:
        if p.poll() is None: p.kill(); p.wait()
    d = dict(peer=framework, mode=args.mode, workload=args.workload, ranks=ranks, threads=args.threads, scaling=args.scaling, nosync=args.nosync, backend=args.backend)
    if outs is None or any(p.returncode for p in ps): d["failed"] = [p.returncode for p in ps]; print(json.dumps(d), flush=True); return 1
    rs = [json.loads(o.strip().splitlines()[-1]) for o in outs]; slow = max(rs, key=lambda r: r["median_us"])
    d.update(slow); d["medians_us"] = [r["median_us"] for r in rs]; d["exec_to_first_step_s"] = max(r["exec_to_first_step_s"] for r in rs)
    d["mean_first_loss"] = float(np.mean([r["first_loss"] for r in rs])); 
    if all(r["loss_after_20"] is not None for r in rs): d["mean_loss_after_20"] = float(np.mean([r["loss_after_20"] for r in rs]))
    d["other_cores"] = d["busy_cores"] - sum(r["own_cores"] for r in rs)
    d["sent_per_rank_per_step"] = d["lo_bytes_per_step"] / ranks
    print(json.dumps({k: (float("%.6g" % v) if isinstance(v, float) else v) for k, v in d.items()}), flush=True); return 0

def rank_main(): return os.environ.get("DIST_RANK") is not None
