#!/bin/sh
# Runs Keras's own tests on the Python package of build/release: tools/keras_suite.sh [FILES OR FOLDERS...], as within
# keras/src. Files that have run are left out: their logs and counts are in build/keras-suite, whose removal begins again.
set -eu
cd "$(dirname "$0")/.."
environment=build/keras-venv requirements=python/tests/keras/suite/requirements.txt
if ! cmp -s "$requirements" "$environment/installed"; then
  echo "keras_suite: installing the packages of $requirements into $environment"
  "${PYTHON:-python3}" -m venv "$environment"
  "$environment/bin/pip" install --quiet --disable-pip-version-check -r "$requirements"
  cp "$requirements" "$environment/installed"
fi
PYTHONPATH="$PWD/build/release/python" KERAS_BACKEND=gradus exec "$environment/bin/python" python/tests/keras/suite/run.py \
  build/keras-suite "$@"
