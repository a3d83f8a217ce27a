#!/bin/sh
# Makes ONNX's conformance suite, which its Python package generates: tools/onnx_suite.sh DIRECTORY
# The package is installed into an environment of its own, .venv-onnx; what is there already takes no time.
set -eu
cd "$(dirname "$0")/.."

version=1.23.2
environment=.venv-onnx
if [ ! -e "$environment/onnx-$version" ]; then
  echo "onnx suite: installing the Python package onnx $version into $environment"
  if ! python3 -m venv --clear "$environment" || ! "$environment/bin/pip" install --quiet "onnx==$version"; then
    echo "onnx suite: the Python package onnx $version could not be installed, and the tests against ONNX's suite need it." >&2
    echo "onnx suite: is PyPI within reach, and is python3-venv installed (tools/setup.sh)?" >&2
    exit 1
  fi
  touch "$environment/onnx-$version"
fi
script=tests/onnx/make_suite.py
if [ ! -e "$1/left_out.txt" ] || [ "$script" -nt "$1/left_out.txt" ]; then
  "$environment/bin/python" "$script" "$1"
fi
