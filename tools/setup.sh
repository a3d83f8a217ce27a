#!/bin/sh
# Installs what Gradus is built from; what is there already is left alone, so that a second call takes no time.
#   tools/setup.sh [build] [format] [docs] [full] [bench] [binding] [python] [package] [arm]      what for:
# `build` where nothing is said; `binding` builds and tests the Python package, `python` makes its wheels, too; `package`
# makes .deb files; `arm` builds for 64-bit ARM by a cross compiler, and tests that with qemu
set -eu

build="g++ make cmake ninja-build pkg-config python3 python3-venv llvm-19-dev libgtest-dev libcli11-dev libtomlplusplus-dev
       nlohmann-json3-dev zlib1g-dev libjpeg-dev libpng-dev libprotobuf-dev protobuf-compiler
       libutf8proc-dev libpcre2-dev
       dataset-fashion-mnist"
format="clang-format-19"
docs="doxygen python3"
full="clang-19 libclang-rt-19-dev clang-format-19 chromium"
bench="python3-venv"
python="python3-dev python3-venv libzstd-dev"
package="dpkg-dev libzstd-dev"
arm="g++-aarch64-linux-gnu binutils-aarch64-linux-gnu qemu-user"
# A second clean build in seconds; a users' compiler to test; training on several machines; the test of the API reference;
# the header for Eigen and the layout of DLPack's structs; for `full` the tests under mpirun. Set-up goes on without them.
optional="ccache clang-14 libucx-dev libgrpc++-dev doxygen libeigen3-dev libdlpack-dev"

for purpose in "${@:-build}"; do
  case $purpose in
    build) wanted="${wanted-} $build" ;;
    format) wanted="${wanted-} $format" ;;
    docs) wanted="${wanted-} $docs" ;;
    full) wanted="${wanted-} $build $full" optional="$optional openmpi-bin debootstrap lintian" ;;
    bench) wanted="${wanted-} $build $bench" ;;
    binding) wanted="${wanted-} $build $python" wants_binding=yes ;;
    python) wanted="${wanted-} $build $python" wants_binding=yes wants_wheels=yes ;;
    package) wanted="${wanted-} $build $package" ;;
    arm) wanted="${wanted-} $build $arm" wants_arm=yes ;;
    *) echo "setup: unknown purpose '$purpose': build, format, docs, full, bench, binding, python, package or arm" >&2; exit 2 ;;
  esac
done

missing_packages() {
  for package in "$@"; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || printf '%s ' "$package"
  done
}

apt_get() {
  set -- env DEBIAN_FRONTEND=noninteractive apt-get "$@"
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

install_packages() {
  missing=$(missing_packages $wanted)
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
    echo "setup: these packages are missing, and installing them needs root or sudo. Let somebody run:" >&2
    echo "  apt-get install --no-install-recommends $missing" >&2
    exit 1
  fi
  echo "setup: installing $missing"
  apt_get update -qq
  if ! apt_get install -y -qq --no-install-recommends $missing >/dev/null; then
    echo "setup: apt could not install everything. Gradus needs Debian 12 or Ubuntu 24.04, or newer; missing are:" >&2
    echo "  $(missing_packages $wanted)" >&2
    exit 1
  fi
  for package in $(missing_packages $optional); do
    apt_get install -y --no-install-recommends "$package" >/dev/null 2>&1 || echo "setup: going on without $package"
  done
}

lacks_header() {
  ! echo "#include <$1>" | ${CXX:-g++} -std=c++20 -fsyntax-only -x c++ - >/dev/null 2>&1
}

# Another system: nothing can be installed by name, but all may be there.
report_what_is_missing() {
  missing=
  need() { missing="$missing
  $1"; }
  command -v "${CXX:-g++}" >/dev/null || need "a C++20 compiler (g++ 12 or newer; CXX names another)"
  command -v cmake >/dev/null || need "cmake 3.25 or newer"
  command -v ninja >/dev/null || need "ninja"
  command -v python3 >/dev/null || need "python3"
  found=
  for config in llvm-config-19 llvm-config; do
    case $($config --version 2>/dev/null) in 19.*) found=$config ;; esac
  done
  [ -n "$found" ] || need "LLVM 19 with its headers (llvm-config in PATH)"
  lacks_header gtest/gtest.h && need "GoogleTest 1.12 or newer"
  lacks_header CLI/CLI.hpp && need "CLI11 2"
  lacks_header toml++/toml.h && need "toml++ 3"
  lacks_header nlohmann/json.hpp && need "nlohmann-json 3"
  lacks_header zlib.h && need "zlib"
  lacks_header png.h && need "libpng 1.6"
  lacks_header utf8proc.h && need "utf8proc 2"
  printf '#define PCRE2_CODE_UNIT_WIDTH 8\n#include <pcre2.h>\n' | ${CXX:-g++} -fsyntax-only -x c++ - >/dev/null 2>&1 || need "PCRE2 10"
  printf '#include <cstdio>\n#include <jpeglib.h>\n' | ${CXX:-g++} -fsyntax-only -x c++ - >/dev/null 2>&1 || need "libjpeg-turbo 2"
  lacks_header google/protobuf/message_lite.h && need "protobuf 3 with its headers"
  command -v protoc >/dev/null || need "protoc, the compiler of protobuf"
  [ -e "${FASHION_MNIST_DIR:-/usr/share/datasets/fashion-mnist}/train-images-idx3-ubyte.gz" ] ||
    need "Fashion-MNIST, the four gzipped idx files (FASHION_MNIST_DIR names their directory)"
  [ -n "$missing" ] || return 0
  echo "setup: this system is neither Debian nor Ubuntu, so nothing was installed. Missing:$missing" >&2
  exit 1
}

if command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; then
  install_packages
else
  report_what_is_missing
fi

# The Python packages by which the binding is made and tested, pinned, in an environment of their own that CMake finds.
# PYTHON names another interpreter than python3.
install_python_packages() {
  cd "$(dirname "$0")/.."
  environment=build/python-venv
  stamp=$environment/installed
  cmp -s python/requirements.txt "$stamp" && return 0
  echo "setup: installing the packages of python/requirements.txt into $environment"
  "${PYTHON:-python3}" -m venv "$environment"
  "$environment/bin/pip" install --quiet --disable-pip-version-check --no-compile -r python/requirements.txt
  cp python/requirements.txt "$stamp"
}
[ -z "${wants_binding-}" ] || install_python_packages
[ -z "${wants_wheels-}" ] || tools/newer_python.sh
[ -z "${wants_arm-}" ] || "$(dirname "$0")/arm_libraries.sh"
