#!/bin/sh
# Whether every source has the form that clang-format 19 gives it: tools/check_format.sh [clang-format-19]
# `make format` mends what it finds.
set -eu
cd "$(dirname "$0")/.."
formatter=${1:-clang-format-19}
find gradus apps examples tests bench fuzz python \( -name '*.h' -o -name '*.cpp' \) -print0 2>/dev/null |
  xargs -0 "$formatter" --dry-run --Werror
