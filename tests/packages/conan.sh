#!/bin/sh
# Makes the package of Conan in a cache of its own, and a project that requires it: conan.sh CONAN SOURCES SCRATCH
set -eu
conan=$1 sources=$2 scratch=$3
rm -rf "$scratch"
mkdir -p "$scratch"
export CONAN_HOME="$scratch/home"
"$conan" profile detect >/dev/null 2>&1
"$conan" create "$sources" -s compiler.cppstd=20 --test-folder "$sources/tests/packages/conan" \
  -c tools.cmake.cmake_layout:test_folder="$scratch/consumer" > "$scratch/log" 2>&1 || { tail -n 60 "$scratch/log"; exit 1; }
grep -qx 12 "$scratch/log"  # the gradient that the project prints
rm -rf "$CONAN_HOME"
