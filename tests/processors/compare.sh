#!/bin/sh
# Compares the bits of this machine with those of another processor's program: compare.sh rows|trainings NATIVE COMMAND...
set -eu
kind=$1 native=$2
shift 2
[ -x "$native" ] || { echo "there is no $native: cmake --build build/release --target processor_bits" && exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$native" "$kind" > "$work/here"
"$@" "$kind" > "$work/there"
diff "$work/here" "$work/there" > "$work/differences" || {
  echo "$(grep -c '^>' "$work/differences") of $(wc -l < "$work/here") lines differ; < this machine, > the other processor:"
  head -n 60 "$work/differences"
  exit 1
}
echo "$(wc -l < "$work/here") lines of bits agree"
