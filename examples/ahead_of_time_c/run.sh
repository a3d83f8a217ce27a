#!/bin/sh
# Compiles train.c as plain C99, links it with nothing but the object that a program of Gradus has written, and runs it:
# run.sh PROGRAM COMPILER. PROGRAM is example_ahead_of_time.
set -eu
program=$1 compiler=$2
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
TMPDIR=$work "$program"
files=$work/gradus_ahead_of_time
for name in $(nm -u "$files/train_step.o" | awk '{ print $2 }'); do
  case $name in
    memcpy | memmove | memset) ;;
    *) echo "the object needs $name" && exit 1 ;;
  esac
done
"$compiler" -std=c99 -Wall -Wextra -pedantic -Werror -O2 -I "$files" "$here/train.c" "$files/train_step.o" -o "$work/train"
"$work/train" "$work/state"
test -s "$work/state"
