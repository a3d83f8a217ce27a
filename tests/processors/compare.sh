#!/bin/sh
# Compares the output of a program of another processor with that of this machine's: compare.sh BUILD NATIVE_BUILD
# PROGRAM ARGUMENTS... GRADUS_EMULATOR runs PROGRAM, which is in BUILD; that of NATIVE_BUILD has the same place in it.
# Times are left out. The emulated program has one thread: on a busy machine emulated threads wait for each other for long.
set -eu
build=$1 native=$2 program=$3
shift 3
native=$native${program#"$build"}
[ -x "$native" ] || { echo "there is no $native: build the target of that name for this machine, too" && exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
without_times() { sed -E 's/[0-9.e+-]+ s  [0-9.e+-]+ ms\/step//' "$1"; }
GRADUS_ISA=avx2 "$native" "$@" > "$work/here" 2>&1  # without AMX, whose sums of bf16 have an order of their own
GRADUS_NUM_THREADS=1 $GRADUS_EMULATOR "$program" "$@" > "$work/there" 2>&1
without_times "$work/here" > "$work/expected"
without_times "$work/there" > "$work/found"
diff "$work/expected" "$work/found" > "$work/differences" || {
  echo "$(grep -c '^>' "$work/differences") of $(wc -l < "$work/expected") lines differ; < this machine, > the other processor:"
  head -n 60 "$work/differences"
  exit 1
}
echo "$(wc -l < "$work/expected") lines of bits agree"
