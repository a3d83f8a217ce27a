#!/bin/sh
# Packs a build tree into a wheel for the Python of build/python-venv: make.sh FOLDER BUILD, from the project's root. auditwheel brings in what the
# library needs beside the C and C++ libraries (protobuf, libjpeg, libpng, ...) and names the systems that the wheel fits.
set -eu
folder=$1
build=$(realpath "$2")
PATH=$PWD/build/python-venv/bin:$PATH
plain=$folder/plain
rm -rf "$plain" "$folder"/*.whl
pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps --wheel-dir "$plain" \
  --config-settings="cmake.define.GRADUS_BUILD=$build" ./python
auditwheel repair --wheel-dir "$folder" "$plain"/*.whl
rm -rf "$plain"
ls -l "$folder"/*.whl
