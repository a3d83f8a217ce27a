"""The workloads as data: what is read from a line of figures, the least work and memory traffic of a step and where these
numbers come from, the goals, what has to agree with the peers, and in which modes a peer runs. WORKLOADS.md says what each
workload is."""
import dataclasses
import typing


def step_time(line):
    """A step's microseconds, the smallest of: the loss read at each step, or at the end; the peer's library, or by hand."""
    extra = line["extra"]
    return min(t for t in (line.get("median_us"), extra.get("sustained_us"), extra.get("raw_us"), extra.get("unroll_us"),
                           extra.get("raw_sustained_us"), extra.get("raw_fused_adam_us"), extra.get("loop10_us")) if t)


def chain_forward(line):
    extra = line["extra"]
    return min(t for t in (extra["fwd_us_per_op"], extra.get("fwd_sustained_us_per_op")) if t)


def new_sizes(line):
    """Milliseconds of the first calls at the four batch sizes that were not seen before."""
    calls = line["extra"]["calls_s"]
    return 1e3 * sum(calls[size][0] for size in ("48", "80", "96", "112"))


# ---------------------------------------------------------------- least work of a step

def dense(rows, *widths, inputs=False):
    """Operations of a training step of dense layers: products forward, by weights, and by what a layer reads, for the first
    layer only where `inputs`. Two operations an element of a product."""
    return rows * sum(2 * a * b * (3 if k > 0 or inputs else 2) for k, (a, b) in enumerate(zip(widths, widths[1:])))


def weights_of(*widths):
    return sum(a * b + b for a, b in zip(widths, widths[1:]))


def convolution(places, taps, inputs, outputs, passes=3):
    return 2 * places * taps * inputs * outputs * passes


WINOGRAD_TAPS = 4  # of 3 x 3, stride 1 and many channels: 16 products for 2 x 2 places


def separable():
    """Of dwsep for one image; (channels, stride) of its blocks after a convolution 3 -> 32 of stride 2 on 32 x 32."""
    places, channels = 256, 32
    work = convolution(places, 9, 3, 32, passes=2)
    for outputs, stride in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (256, 1)):
        places //= stride * stride
        work += convolution(places, 9, 1, channels) + convolution(places, 1, channels, outputs)
        channels = outputs
    return work + dense(1, 256, 10, inputs=True)


def gpt(layers, tokens=8 * 256, places=256, width=256, vocabulary=65):
    """Projections of a block: 3 + 1 + 4 + 4 squares of the width; scores and their sums over half of all places."""
    a_layer = 2 * 12 * width * width + 2 * 2 * width * places / 2
    return 3 * tokens * (layers * a_layer + 2 * width * vocabulary)


def token_weights(layers=8, width=512, vocabulary=8192):
    """Numbers of the matrices that a token of generate goes through."""
    return layers * 12 * width * width + width * vocabulary


def generate(batch, layers=8, width=512):
    """A token for each sequence: all matrices are read, and keys and values of the places so far, 128 of 256."""
    kept = 2 * batch * layers * width * 128
    return Limit(flops=2 * (batch * token_weights() + kept), bytes=4 * (token_weights() + kept), traffic="read")


def lstm(rows=32, places=128, inputs=32, units=64):
    """Gates from inputs and state: forward, by weights, and by the state; not by the inputs."""
    return 2 * rows * places * 4 * units * (2 * inputs + 3 * units)


@dataclasses.dataclass
class Limit:
    """Operations and the bytes that have to go through memory because no cache holds them; `traffic`: what kind of."""
    flops: float = 0
    narrow_flops: float = 0
    bytes: float = 0
    traffic: str = "in_place"

    def microseconds(self, machine):
        """machine: `extra` of a line of `limits`. Nothing where the processor has no fast bf16: then f32 is no limit."""
        narrow = machine["bf16_gflops"] or machine["gflops"]
        return (self.flops / machine["gflops"] + self.narrow_flops / narrow
                + self.bytes / machine[self.traffic + "_gb_s"]) / 1e3


# Adam reads and writes parameters and two moments, reads the gradient from a cache where they do not fit.
def adam_bytes(parameters):
    return 6 * 4 * parameters


# ---------------------------------------------------------------- figures, checks, workloads

@dataclasses.dataclass
class Figure:
    name: str
    unit: str
    read: typing.Callable
    goal: float | None = None    # ratio to the best peer
    per_us: float | None = None  # of its unit in a microsecond, if it is a step and so has a limit
    compiling: bool = False      # compiling is measured: peers that do count, and find nothing compiled before
    beside: tuple = ()           # only programs with names that begin so count; else all but that in C++

    def of(self, line):
        """Nothing where the line has no such figure."""
        try:
            return self.read(line)
        except (KeyError, TypeError, ValueError):
            return None

    def counts(self, peer):
        if self.beside:
            return peer.startswith(self.beside)
        return peer != CPP and (not self.compiling or peer in COMPILING)


def step_us(goal=None):
    return Figure("step", "us", step_time, goal, 1)


def step_ms(goal=None):
    return Figure("step", "ms", lambda line: step_time(line) / 1e3, goal, 1e-3)


def first_call(goal=None):
    """Tracing, compiling and running; against those that compile."""
    return Figure("first call", "s", lambda line: line["first_call_s"], goal, compiling=True)


@dataclasses.dataclass
class Check:
    """A number that everybody computes from the same data and weights: the first of `names` that a line has."""
    what: str
    names: tuple
    tolerance: float

    def value(self, line):
        return next((line["extra"][name] for name in self.names if line["extra"].get(name) is not None), None)

    def differs_by(self, ours, theirs):
        return abs(ours - theirs) / max(1.0, abs(theirs))


LOSS = Check("loss after 20 steps", ("loss_after_20",), 1e-4)
# Of 784-2048-2048-10 the peers' own losses are 3e-4 apart after 20 steps, since they round differently, and 6e-5 after 10.
EARLY_LOSS = Check("loss after 10 steps", ("loss_after_10",), 1e-4)
# A product in bf16 rounds to 8 bits, and the peers differ in where they do it.
NARROW_LOSS = Check("loss after 20 steps", ("loss_after_20",), 2e-2)
SAME_TOKENS = Check("sum of the tokens", ("sum_of_tokens",), 0)


@dataclasses.dataclass
class Workload:
    figures: list
    limit: Limit | None = None
    check: Check | None = None
    growth_goal: float | None = None  # of the growth of memory

    def deciding(self):
        """The figures for which a peer runs again."""
        return [figure for figure in self.figures if figure.goal] or self.figures[:1]


MLP, WIDE = (784, 128, 10), (784, 2048, 2048, 10)
WORKLOADS = {
    "mlp_tiny": Workload([step_us(.50)], Limit(dense(64, *MLP)), LOSS),
    "mlp_tiny_b16": Workload([step_us(.25)], Limit(dense(16, *MLP)), LOSS),
    "mlp_tiny_b256": Workload([step_us(.60)], Limit(dense(256, *MLP)), LOSS),
    "mlp_tiny_b1024": Workload([step_us()], Limit(dense(1024, *MLP)), LOSS),
    "predict_b1": Workload([step_us()]),
    "mlp_big": Workload([step_ms(.85)], Limit(dense(256, *WIDE), bytes=adam_bytes(weights_of(*WIDE))),
                        EARLY_LOSS, .5),
    "mlp_big_bf16": Workload([step_ms(.80)], Limit(narrow_flops=dense(256, *WIDE), bytes=adam_bytes(weights_of(*WIDE))),
                             NARROW_LOSS),
    "cnn": Workload([step_ms(.70)], Limit(64 * (convolution(784, 9, 1, 32, passes=2) + convolution(196, 9, 32, 64)
                                                + convolution(196, WINOGRAD_TAPS, 64, 64)
                                                + dense(1, 3136, 128, 10, inputs=True)))),
    "dwsep": Workload([step_ms(.45)], Limit(64 * separable())),
    "gpt": Workload([step_ms(.70), first_call(.10)], Limit(gpt(4)), LOSS, .5),
    "gpt_bf16": Workload([step_ms(.50)], Limit(narrow_flops=gpt(4)), NARROW_LOSS),
    "gpt_l1": Workload([first_call(), step_ms()], Limit(gpt(1))),
    "gpt_l2": Workload([first_call(), step_ms()], Limit(gpt(2))),
    "gpt_l8": Workload([first_call(), step_ms()], Limit(gpt(8))),
    "generate": Workload([step_ms(.70)], generate(1), SAME_TOKENS),
    "generate_b8": Workload([step_ms(.70)], generate(8), SAME_TOKENS),
    "generate_growing": Workload([step_ms(.80)], generate(1), SAME_TOKENS),
    # Forward, and per output two products backward; the gradient by the last layer is a row of its weights.
    "jacobian": Workload([step_ms(.70)], Limit(8192 * 2 * ((64 * 256 + 256 * 256 + 256 * 10)
                                                           + 10 * (256 * 256 + 256 * 64)),
                                               bytes=4 * 8192 * 10 * 64, traffic="copy_past_caches"),
                         Check("sum of all elements", ("sumabs",), 1e-4), .5),
    # Forward and by inputs; x is read, and as much is written.
    "input_grad": Workload([step_ms(.80)], Limit(65536 * 2 * (2 * (784 * 512 + 512 * 512) + 512),
                                                 bytes=2 * 4 * 65536 * 784, traffic="copy_past_caches"), growth_goal=.5),
    # By the identity for outer products: forward, and the gradient by the hidden layer.
    "pegn": Workload([step_ms(.30)], Limit(1024 * 2 * (784 * 128 + 2 * 128 * 10)),
                     Check("sum of the norms", ("sum", "vectorized_map_sum"), 1e-4)),
    # The update, and eight gradients added up in memory.
    "accumulate": Workload([step_ms(.78)], Limit(8 * dense(128, *WIDE), bytes=(6 + 2 * 8) * 4 * weights_of(*WIDE)),
                           EARLY_LOSS),
    # Parameters and moments read and written, gradients read for their norm and again for the update.
    "adamw_update": Workload([step_ms(.60)], Limit(bytes=8 * 4 * 20_986_880)),
    # Rows of the table and of two moments, read and written.
    "table_update": Workload([step_us(1.0)], Limit(bytes=6 * 4 * 4096 * 64)),
    "lstm": Workload([step_ms(.60)], Limit(lstm() + dense(32, 64, 10, inputs=True))),
    "eager_chain": Workload([Figure("forward", "us/op", chain_forward, .15),
                             Figure("forward+gradient", "us/op", lambda line: line["extra"]["fwd_bwd_us_per_op"], .12)]),
    "cold_mlp": Workload([Figure("exec to first loss", "ms", lambda line: 1e3 * line["extra"]["cold_s"], .06)]),
    "cold_gpt": Workload([Figure("exec to first loss", "ms", lambda line: 1e3 * line["extra"]["cold_s"], .15)]),
    "retrace": Workload([Figure("four new sizes", "ms", new_sizes)]),
    # Every pixel is read as a byte and written as a float, into a batch that is soon written again.
    "pipeline": Workload([Figure("64 images", "us", lambda line: line["median_us"], .33, 1)],
                         Limit(bytes=64 * 784 * 5, traffic="copy")),
    "images": Workload([Figure("32 images", "ms", lambda line: line["median_us"] / 1e3, 1.0)]),
    "fit": Workload([Figure("epoch", "s", lambda line: line["median_us"] / 1e6, .50, 1e-6)],
                    Limit(60000 * dense(1, *MLP))),
}

# In which modes a peer runs a workload; what is not named runs in those of "".
MODES = {
    "jax": {"": ["jit"], "eager_chain": ["nojit"], "generate_growing": [], "table_update": [], "images": []},
    "tf": {"": ["function", "xla"], "eager_chain": ["eager"], "pipeline": ["function"], "images": [],
           "fit": ["function"], "generate": [], "generate_b8": [], "generate_growing": [], "table_update": []},
    "torch": {"": ["eager", "compile"], "eager_chain": ["eager"], "cold_mlp": ["eager"], "cold_gpt": ["eager"],
              "pipeline": ["eager"], "images": ["eager"], "fit": ["eager"], "generate_growing": ["eager"],
              "table_update": ["eager"], "cnn": ["eager", "channels_last", "compile"],
              "dwsep": ["eager", "channels_last", "compile"]},
}
# Programs in Python: the script runs ours and, where `peers` names no other workload of theirs, the peers'; `native` is the
# workload of gradus_bench that does the same in C++.
CPP = "gradus in C++"


@dataclasses.dataclass
class PythonWorkload(Workload):
    modes: dict = dataclasses.field(default_factory=dict)
    peers: str = ""
    native: str = ""
    script: str = "py_rows.py"


SAME_SUM = Check("sum of the result", ("sum",), 1e-5)
OP_BY_OP = {"jax": ["nojit"], "tf": ["eager"], "torch": ["eager"]}
COMPILED = {"jax": ["jit"], "tf": ["function", "xla"], "torch": ["compile"]}
PYTHON_WORKLOADS = {
    "py_import": PythonWorkload([Figure("import", "ms", lambda line: line["median_us"] / 1e3, .25),
                                 Figure("memory after import", "MB", lambda line: line["extra"]["memory_mb"], .4)],
                                modes=OP_BY_OP),
    "py_op": PythonWorkload([Figure("recorded", "us", lambda line: line["median_us"], .25),
                             Figure("with numpy()", "us", lambda line: line["extra"]["numpy_us"], .7)],
                            check=SAME_SUM, modes=OP_BY_OP),
    "py_chain": PythonWorkload([Figure("20 ops and numpy()", "us", lambda line: line["median_us"], .3)], check=SAME_SUM,
                               modes=OP_BY_OP),
    "py_function": PythonWorkload([Figure("call and numpy(), of JAX", "us", lambda line: line["median_us"], .6, beside=("jax",)),
                                   Figure("of TensorFlow", "us", lambda line: line["median_us"], .05, beside=("tf",)),
                                   Figure("of all", "us", lambda line: line["median_us"])],
                                  check=SAME_SUM, modes=COMPILED),
    "py_mlp_step": PythonWorkload([step_us(.6), Figure("of C++", "us", step_time, 1.2, beside=(CPP,))], check=LOSS,
                                  modes=dict(COMPILED, torch=["eager", "compile"]), peers="mlp_tiny", native="mlp_tiny"),
    "py_fit": PythonWorkload([Figure("epoch, of Keras", "s", lambda line: line["median_us"] / 1e6, .3, beside=("tf",)),
                              Figure("of C++", "s", lambda line: line["median_us"] / 1e6, 1.1, beside=(CPP,))],
                             modes={"tf": ["function"]}, peers="fit", native="fit"),
    "py_generator": PythonWorkload([Figure("64 elements", "us", lambda line: line["median_us"], .7)], check=SAME_SUM,
                                   modes=OP_BY_OP),
}


# The same program of Keras by each backend; keras_rows.py names them.
BACKENDS = {"jax": ["jax"], "tf": ["tensorflow"], "torch": ["torch"]}


def keras_workload(*figures, check=SAME_SUM, **more):
    return PythonWorkload(list(figures), check=check, script="keras_rows.py", **{"modes": BACKENDS, **more})


def keras_steps(goal):
    """A step of fit, and the first fit, which compiles."""
    return keras_workload(Figure("step", "us", lambda line: line["median_us"], goal),
                          Figure("first fit", "s", lambda line: line["first_call_s"], .2), check=EPOCH_LOSS)


EPOCH_LOSS = Check("loss of the first epoch", ("sum",), 1e-4)
PYTHON_WORKLOADS |= {
    "keras_mlp": keras_steps(.4),
    "keras_cnn": keras_steps(.25),
    "keras_lstm": keras_steps(.4),
    "keras_transformer": keras_steps(.75),
    "keras_predict": keras_workload(Figure("one row", "us", lambda line: line["median_us"], .3)),
    "keras_epoch": keras_workload(Figure("epoch", "s", lambda line: line["median_us"] / 1e6),
                                  Figure("of C++", "s", lambda line: line["median_us"] / 1e6, 1.25, beside=(CPP,)),
                                  check=None, native="fit"),
    "keras_import": keras_workload(Figure("import, of Keras on NumPy", "ms", lambda line: line["median_us"] / 1e3, 1.05,
                                          beside=("numpy",)), check=None, modes={}),
}
# Those that compile before a first step.
COMPILING = ["jax jit", "tf function", "tf xla", "torch compile"]
# Where the processor is not Intel's: PyTorch whose MKL does not ask for the vendor, in these modes.
UNBOUND_MODES = ["eager"]
