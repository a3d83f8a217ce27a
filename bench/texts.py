"""Our StableHLO and JAX's own of the same training step, compiled and run by turns in one plugin: times and their ratios.

The plugin is the processor's (`make xla-plugin`) or the one given; JAX is in .venv-jax (`make bench-peers PEERS=jax`).
`python3 bench/texts.py [WORKLOAD...] [--plugin FILE]`."""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

BENCH = pathlib.Path(__file__).resolve().parent
ROOT = BENCH.parent
WORKLOADS = ["mlp_tiny", "cnn", "lstm", "gpt"]


def plugin_of_the_processor():
    found = sorted(ROOT.glob(".venv-xla/lib/python3*/site-packages/*/pjrt_c_api_cpu_plugin.so"))
    if not found:
        sys.exit("there is no plugin: make xla-plugin, or give one by --plugin")
    return found[0]


def said(command, **environment):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd=BENCH,
                            env=os.environ | environment)
    if result.returncode != 0:
        sys.exit(f"{command[0]}: exit {result.returncode}: {result.stderr.strip()[-800:]}")
    return result.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", default=WORKLOADS)
    parser.add_argument("--plugin", type=pathlib.Path)
    parser.add_argument("--jax", type=pathlib.Path, default=ROOT / ".venv-jax" / "bin" / "python")
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "build" / "release" / "bin")
    options = parser.parse_args()
    plugin = options.plugin or plugin_of_the_processor()
    programs = options.programs.resolve()
    if not options.jax.exists():
        sys.exit(f"{options.jax}: there is no JAX (make bench-peers PEERS=jax)")
    print(f"{'':12}{'ms a step, median (least): ours':>34}{'JAX':>18}{'ratio':>8}{'s to compile: ours':>22}{'JAX':>7}{'ratio':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for workload in options.workloads:
            ours, theirs = (pathlib.Path(folder, f"{who}.mlir") for who in ("ours", "theirs"))
            said([programs / "gradus_bench", workload, "--stablehlo", ours])
            said([options.jax, BENCH / "peer_jax.py", workload, "text", theirs], JAX_PLATFORMS="cpu")
            a, b = json.loads(said([programs / "gradus_bench_texts", plugin.resolve(), ours, theirs]))
            shown = [f"{each['median_ms']:.3f} ({each['min_ms']:.3f})" for each in (a, b)]
            print(f"{workload:12}{shown[0]:>34}{shown[1]:>18}{a['median_ms'] / b['median_ms']:8.2f}"
                  f"{a['compile_s']:22.2f}{b['compile_s']:7.2f}{a['compile_s'] / b['compile_s']:8.2f}", flush=True)


if __name__ == "__main__":
    main()
