# The front door. Everything behind it is CMake: `cmake --preset dev && cmake --build --preset dev`.
PREFIX  ?= /usr/local
DESTDIR ?=
JOBS    ?= $(shell nproc)
# Options for CMake, the first time that it configures.
CONFIGURE ?=

.PHONY: all run tools check check-long install clean build-deps format

all: build-deps ## Build the optimised programs: weir, weir-worker, weir-demo
	@test -f build/release/build.ninja || cmake --preset release $(CONFIGURE)
	@cmake --build --preset release -j $(JOBS) --target weir weir-worker weir-demo weir_mlops_shared
	@ln -sf release/programs/weir build/weir
	@ln -sf release/programs/weir-worker build/weir-worker
	@ln -sf release/programs/weir-demo build/weir-demo

tools: build-deps ## Build the programs of tools/, which check and measure, as build/sched-cases and so on
	@packaging/install-deps.sh packaging/tools-deps.txt
	@cmake --preset release
	@cmake --build --preset release -j $(JOBS) --target tools
	@cd build && find release/tools -maxdepth 1 -type f -executable -exec ln -sf -t . {} +

build-deps:
	@mkdir -p build
	@packaging/install-deps.sh packaging/build-deps.txt

run: all ## Start Weir and play the reference use case until interrupted (DEMO=--once: to its end)
	@packaging/run.sh $(DEMO)

check: build-deps ## Every test (20 minutes on 2 cores)
	@packaging/install-deps.sh packaging/check-deps.txt
	@tests/check.sh

check-long: build-deps ## Tests that take long: kills, swaps, fuzzing, accuracy on real data
	@packaging/install-deps.sh packaging/check-deps.txt
	@tests/check.sh --long

install: all ## Install under PREFIX (default /usr/local)
	@DESTDIR=$(DESTDIR) cmake --install build/release --prefix $(PREFIX)

format: ## Bring every C file into the house format
	@git ls-files '*.c' '*.h' | xargs clang-format-14 -i

clean:
	@rm -rf build
