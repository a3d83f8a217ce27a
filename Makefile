# Two commands do everything from nothing on a fresh Debian 12: `make run` trains on Fashion-MNIST, `make test` tests.
# A thin layer over CMake's presets: each target says in one line what it does.
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
PREFIX ?= /usr/local
PEERS ?= jax tf torch
FUZZ_RUNS ?= 1000000
WORKLOADS ?=
BENCH_FLAGS ?=
PYTHON_PACKAGE ?= ON

.PHONY: setup build run test test-full python-package sanitize fuzz bench bench-peers docs format install \
        wheel package clean
.DEFAULT_GOAL := build
.PRECIOUS: build/%/build.ninja

setup:
	@tools/setup.sh build

build/%/build.ninja: | setup
	cmake --preset $*

build: setup build/release/build.ninja
	cmake --build build/release -j $(JOBS)

run: setup build/release/build.ninja
	cmake --build build/release -j $(JOBS) --target gradus_command
	$(if $(FASHION_MNIST_DIR),GRADUS_DATA_DIR=$(FASHION_MNIST_DIR)) build/release/bin/gradus train configs/fashion_mnist.toml

test: xla-plugin python-package
	cmake --build build/release -j $(JOBS)
	ctest --preset release

# The build folder builds the Python package, too, which `make run` does without; PYTHON_PACKAGE=OFF leaves it out.
python-package: setup
	$(if $(filter ON,$(PYTHON_PACKAGE)),@tools/setup.sh binding)
	@grep -qsx GRADUS_PYTHON:BOOL=$(PYTHON_PACKAGE) build/release/CMakeCache.txt || \
	  cmake --preset release -DGRADUS_PYTHON=$(PYTHON_PACKAGE)

# The processor's PJRT plugin, on which the tests of accelerators run; without it they are skipped.
.PHONY: xla-plugin
xla-plugin:
	@tools/xla_plugin.sh

# All of Keras's own tests, by file; a second call goes on with the files that have not run. Some: KERAS_TESTS="layers saving"
.PHONY: test-keras
test-keras: setup
	@tools/setup.sh python
	cmake --preset release -DGRADUS_PYTHON=ON
	cmake --build build/release -j $(JOBS) --target gradus_python_package
	tools/keras_suite.sh $(KERAS_TESTS)

# For 64-bit ARM by a cross compiler: library, command, tests, examples; qemu runs tests, and the bits of op rows and of
# trainings are compared with this machine's. An ARM machine needs none of it: `make run` and `make test` are the same.
.PHONY: test-arm
test-arm: setup build/release/build.ninja
	@tools/setup.sh arm
	cmake --preset aarch64
	cmake --build build/release -j $(JOBS) --target processor_bits --target gradus_gallery
	cmake --build build/aarch64 -j $(JOBS)
	ctest --preset aarch64

# What takes longer: the remaining tests, the sanitizers, the fuzz targets.
test-full: setup-full python-package
	$(if $(filter ON,$(PYTHON_PACKAGE)),@tools/setup.sh python)
	cmake --preset release -DGRADUS_PACKAGES=ON
	cmake --build build/release -j $(JOBS)
	ctest --preset release-full
	$(MAKE) sanitize fuzz

.PHONY: setup-full
setup-full:
	@tools/setup.sh full package

sanitize: sanitize-asan sanitize-tsan
sanitize-%: build/%/build.ninja
	cmake --build build/$* -j $(JOBS)
	ctest --preset $*

fuzz: setup-full build/fuzz/build.ninja
	cmake --build build/fuzz -j $(JOBS)
	for target in build/fuzz/bin/*_fuzz; do fuzz/run.sh $$target $(FUZZ_RUNS) || exit 1; done

# Against the peers, in turn; the report is build/bench.md and .json. A few: make bench WORKLOADS="gpt cnn" PEERS="jax tf";
# each op and layer by itself: make bench WORKLOADS=ops; from Python: make bench WORKLOADS="py_op keras_mlp"
bench: bench-peers $(if $(filter py_% keras_%,$(WORKLOADS)),python-package,build/release/build.ninja)
	cmake --build build/release -j $(JOBS) --target gradus_bench --target gradus_command \
	  $(if $(filter py_% keras_%,$(WORKLOADS)),--target gradus_python_package --target gradus_bundled)
	python3 bench/run.py $(if $(WORKLOADS),--workloads $(WORKLOADS)) --peers $(PEERS) --json build/bench.json \
	  --markdown build/bench.md $(BENCH_FLAGS)

# The peers, each in an environment of its own; one that cannot be installed is left out.
bench-peers:
	@tools/setup.sh bench
	@for peer in $(PEERS); do tools/install_peer.sh $$peer || echo "bench-peers: $$peer is left out" >&2; done

# The API reference, from the comments of the headers; it says where its first page is.
docs:
	@tools/setup.sh docs
	@python3 docs/api/make.py build/docs

format:
	@tools/setup.sh format
	find gradus apps examples tests bench fuzz python -name '*.h' -o -name '*.cpp' | xargs clang-format-19 -i

install: build
	cmake --install build/release --prefix $(PREFIX)

# The Python package with the library, its headers and the command inside; the file is in build/wheel (docs/python.md).
wheel: setup
	@tools/setup.sh python
	cmake --preset release -DGRADUS_PYTHON=ON
	cmake --build build/release -j $(JOBS) --target gradus_wheel_parts
	python/wheel/make.sh build/wheel build/release

# Files for dpkg, for the system on which this runs: library, headers, command, parts for several ranks (docs/packages.md).
package: setup
	@tools/setup.sh package
	cmake --preset release -DGRADUS_PACKAGES=ON
	cmake --build build/release -j $(JOBS) --target gradus_packages

clean:
	rm -rf build
