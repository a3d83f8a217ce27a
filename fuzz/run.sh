#!/bin/sh
# Runs one fuzz target for a number of executions, from the seeds of its subject: fuzz/run.sh TARGET RUNS
# A finding stops it with the input in build/fuzz/findings/; `TARGET FILE` runs that input again.
set -eu
target=$1
runs=$2
shift 2

subject=$(basename "$target" _fuzz)
seeds=$(dirname "$0")/seeds/$subject
corpus=build/fuzz/corpus/$subject
mkdir -p "$corpus" "$seeds" build/fuzz/findings
if [ "$subject" = onnx ]; then  # from the models of ONNX's own suite
  tools/onnx_suite.sh build/onnx-suite
  find build/onnx-suite -name model.onnx -size -4k | while read -r model; do
    cp "$model" "$corpus/$(basename "$(dirname "$model")")"
  done
fi
log=build/fuzz/$subject.log
words=$(dirname "$0")/$subject.dict
[ ! -e "$words" ] || set -- -dict="$words" "$@"
echo "fuzz: $subject, $runs executions"
if ! "$target" -runs="$runs" -seed=1 -max_len=4096 -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 -verbosity=0 \
  -artifact_prefix="build/fuzz/findings/$subject-" "$@" "$corpus" "$seeds" >"$log" 2>&1; then
  tail -n 60 "$log"
  exit 1
fi
grep 'stat::' "$log"
