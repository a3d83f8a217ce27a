"""Trainings before and after `gradus advise --apply`, and as tuned by hand: seconds an epoch, and their ratios.

The configurations of configs/, which should not get slower, and five that are slow without need, which should reach 0.9
of the speed of what was tuned by hand: a slow source without prefetch, batches of 4, 64 threads for data, recomputation
without need, float32 where the machine has AMX. Fails where one does not. `python3 bench/advice.py GRADUS [CASE...]`."""
import argparse
import gzip
import json
import os
import pathlib
import random
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import zlib

SLOWEST = 1.05  # after / before, of noise
LEAST_SPEED = 0.9  # of the speed of what was tuned by hand
FASHION_MNIST = pathlib.Path(os.environ.get("FASHION_MNIST_DIR", "/usr/share/datasets/fashion-mnist"))
IDX = """[data]
train_images = "train-images"
train_labels = "train-labels"
test_images = "test-images"
test_labels = "test-labels"
mean = 0.286
deviation = 0.353
"""
IMAGES = """[data]
kind = "images"
train = "pictures"
height = 96
width = 96
"""


def dense(units, activation="relu"):
    return f'[[layers]]\ntype = "dense"\nunits = {units}\nactivation = "{activation}"\n'


FLATTEN = '[[layers]]\ntype = "flatten"\n'
MLP = FLATTEN + dense(128) + dense(10, "linear")
BIG_MLP = FLATTEN + dense(2048) + dense(2048) + dense(10, "linear")
CNN = "".join(f'[[layers]]\ntype = "conv2d"\nfilters = {n}\nkernel_size = 3\nactivation = "relu"\n'
              '[[layers]]\ntype = "max_pooling2d"\n' for n in (16, 32)) + FLATTEN + dense(10, "linear")
OF_GRAY = '[[layers]]\ntype = "reshape"\nshape = [28, 28, 1]\n'
OPTIMIZER = '[optimizer]\ntype = "adam"\n'


def training(**keys):
    lines = [f"{key} = {json.dumps(value)}\n" for key, value in keys.items()]
    return OPTIMIZER + "[train]\n" + "".join(lines)


def unfavourable(budget):
    """Name: (configuration, tuned by hand, further options of advise)."""
    return {
        "no prefetch, slow source": (IMAGES + "prefetch = false\n" + CNN + training(batch_size=32),
                                     IMAGES + "prefetch = true\ncache = true\n" + CNN + training(batch_size=32), []),
        "batch 4": (IDX + MLP + training(batch_size=4), IDX + MLP + training(batch_size=256), []),
        "64 data threads": (IMAGES + "prefetch = true\nnum_parallel_calls = 64\n" + CNN + training(batch_size=32),
                            IMAGES + "prefetch = true\ncache = true\n" + CNN + training(batch_size=32), []),
        "recompute": (IDX + OF_GRAY + CNN + training(batch_size=128, max_bytes=budget),
                      IDX + OF_GRAY + CNN + training(batch_size=128), []),
        "float32": (IDX + BIG_MLP + training(batch_size=256), IDX + BIG_MLP + training(batch_size=256, policy="mixed_bfloat16"),
                    ["--apply=precision"]),
    }


def first_examples(folder, count):
    """The first images of Fashion-MNIST, in plain files."""
    for name, source, n in (("train", "train", count), ("test", "t10k", max(count // 10, 100))):
        images = gzip.decompress((FASHION_MNIST / f"{source}-images-idx3-ubyte.gz").read_bytes())
        labels = gzip.decompress((FASHION_MNIST / f"{source}-labels-idx1-ubyte.gz").read_bytes())
        (folder / f"{name}-images").write_bytes(struct.pack(">IIII", 0x803, n, 28, 28) + images[16:16 + n * 784])
        (folder / f"{name}-labels").write_bytes(struct.pack(">II", 0x801, n) + labels[8:8 + n])


def png(side, rows):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    raw = b"".join(b"\0" + row for row in rows)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(raw, 6)) + chunk(b"IEND", b""))


def pictures(folder, count, side=256):
    """Folders of noisy pictures that take some milliseconds each to decode and to bring to size."""
    noise = random.Random(0)
    for label in range(4):
        (folder / "pictures" / f"class{label}").mkdir(parents=True)
    for i in range(count):
        rows = [noise.randbytes(3 * side) if y * 4 // side == i % 4 else bytes(3 * side) for y in range(side)]
        (folder / "pictures" / f"class{i % 4}" / f"{i}.png").write_bytes(png(side, rows))


class Runs:
    def __init__(self, gradus, folder, options):
        self.gradus, self.folder, self.options, self.number = gradus, folder, options, 0

    def call(self, *arguments):
        result = subprocess.run([self.gradus, *map(str, arguments)], capture_output=True, text=True, timeout=1200)
        if result.returncode != 0:
            raise RuntimeError(f"gradus {' '.join(map(str, arguments))}: {(result.stdout + result.stderr)[-2000:]}")
        return result.stdout

    def seconds(self, config):
        """Of an epoch, the first one left out, in which programs are compiled."""
        self.number += 1
        out = self.call("train", config, "--json", "--quiet", "--epochs", self.options.epochs, "--output",
                        self.folder / f"run{self.number}")
        return json.loads(out)["seconds_per_epoch"]

    def advised(self, config, further):
        out = config.with_suffix(".advised.toml")
        said = self.call("advise", config, "--apply", out, "--apply=batch_size",
                         "--max-seconds", self.options.max_seconds, *further)
        if self.options.verbose:
            print(said)
        return out

    def compare(self, config, by_hand, further):
        advised = self.advised(config, further)
        changes = re.findall(r"^(\w+) = (\S.*?)  # was", advised.read_text(), re.M)
        # Where nothing is to be changed both are the same training, and their ratio would be noise.
        configs = {"before": config} | ({"after": advised} if changes else {}) | ({"hand": by_hand} if by_hand else {})
        seconds = {name: [] for name in configs}
        for _ in range(self.options.rounds):
            for name, file in configs.items():
                seconds[name].append(self.seconds(file))
        medians = {name: statistics.median(values) for name, values in seconds.items()}
        return {"after": medians["before"]} | medians, changes


def smallest_budget(runs, config):
    """Of the bytes that the step of a configuration keeps, with values computed again."""
    result = subprocess.run([runs.gradus, "train", str(config), "--set", "train.max_bytes=1", "--fast-dev-run", "1"],
                            capture_output=True, text=True)
    return int(re.search(r"the smallest that works is (\d+)", result.stderr).group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gradus", type=pathlib.Path)
    parser.add_argument("cases", nargs="*", help="parts of names (all)")
    parser.add_argument("--examples", type=int, default=12000)
    parser.add_argument("--pictures", type=int, default=600)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--max-seconds", type=float, default=30)
    parser.add_argument("--verbose", action="store_true", help="with the tables of advise")
    options = parser.parse_args()
    wanted = lambda name: not options.cases or any(case in name for case in options.cases)
    configs = pathlib.Path(__file__).resolve().parent.parent / "configs"
    missed = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        runs = Runs(options.gradus.resolve(), folder, options)
        first_examples(folder, options.examples)
        pictures(folder, options.pictures)

        def written(name, contents):
            file = folder / (re.sub(r"\W+", "_", name) + ".toml")
            file.write_text(contents)
            return file

        cases = {}
        for file in sorted(configs.glob("*.toml")):
            contents = file.read_text()
            for key, source in (("train_images", "train-images"), ("train_labels", "train-labels"),
                                ("test_images", "test-images"), ("test_labels", "test-labels")):
                contents = re.sub(rf'^{key} = .*', f'{key} = "{source}"', contents, flags=re.M)
            contents = re.sub(r'^directory = .*\n', "", contents, flags=re.M)
            contents = contents.replace('"../examples/data', f'"{configs.parent}/examples/data')
            cases[file.stem] = (contents, None, [])
        plain = written("plain", IDX + OF_GRAY + CNN + training(batch_size=128))
        cases |= unfavourable(smallest_budget(runs, plain))
        print(f"{'configuration':26}{'before':>10}{'after':>10}{'by hand':>10}{'after/before':>14}{'speed/hand':>12}  changes")
        for name, (contents, by_hand, further) in cases.items():
            if not wanted(name):
                continue
            seconds, changes = runs.compare(written(name, contents), by_hand and written(name + " by hand", by_hand), further)
            before, after, hand = seconds["before"], seconds["after"], seconds.get("hand")
            print(f"{name:26}{before:8.3f} s{after:8.3f} s" + (f"{hand:8.3f} s" if hand else " " * 10) +
                  f"{after / before:14.2f}" + (f"{hand / after:12.2f}" if hand else " " * 12) + "  " +
                  ", ".join(f"{key} = {value}" for key, value in changes), flush=True)
            if after > SLOWEST * before:
                missed.append(f"{name}: slower than before")
            if hand and hand / after < LEAST_SPEED:
                missed.append(f"{name}: {hand / after:.2f} of the speed that is reached by hand")
    print("\n".join(missed), file=sys.stderr)
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
