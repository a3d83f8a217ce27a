#!/bin/sh
# Compiles train.c and both.c as plain C99, links each with nothing but the object that a program of Gradus has written,
# and runs them; then a new process of the program takes the state that train.c has written: run.sh PROGRAM COMPILER.
# PROGRAM is example_ahead_of_time.
set -eu
program=$1 compiler=$2
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
TMPDIR=$work "$program"
files=$work/gradus_ahead_of_time
for object in train_step net; do
  for name in $(nm -u "$files/$object.o" | awk '{ print $2 }'); do
    case $name in
      memcpy | memmove | memset) ;;
      *) echo "the object needs $name" && exit 1 ;;
    esac
  done
done
build() {
  "$compiler" -std=c99 -Wall -Wextra -pedantic -Werror -O2 -I "$files" "$here/$1.c" "$files/$2.o" -o "$work/$1"
}
build train train_step
build both net
"$work/train" "$work/state"
"$work/both"
"$program" "$work/state" "$files/train_step.h"
