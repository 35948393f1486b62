# The front door. Everything behind it is CMake: `cmake --preset dev && cmake --build --preset dev`.
PREFIX  ?= /usr/local
DESTDIR ?=
JOBS    ?= $(shell nproc)
# Options for CMake, the first time that it configures.
CONFIGURE ?=

.PHONY: all run tools image check check-long install uninstall clean build-deps format

all: build-deps ## Build the optimised programs: weir, weir-worker, weir-demo, and weir-camera where libavformat-dev is
	@test -f build/release/build.ninja || cmake --preset release $(CONFIGURE)
	@cmake --build --preset release -j $(JOBS) --target weir weir-worker weir-camera weir-demo weir_mlops_shared
	@ln -sf release/programs/weir build/weir
	@ln -sf release/programs/weir-worker build/weir-worker
	@ln -sf release/programs/weir-demo build/weir-demo
	@test ! -x build/release/programs/weir-camera || ln -sf release/programs/weir-camera build/weir-camera

tools: build-deps ## Build the programs of tools/, which check and measure, as build/sched-cases and so on
	@packaging/install-deps.sh packaging/tools-deps.txt
	@cmake --preset release
	@cmake --build --preset release -j $(JOBS) --target tools
	@cd build && find release/tools -maxdepth 1 -type f -executable -exec ln -sf -t . {} +

image: all ## Pack Weir as an OCI image, build/weir-image.tar: docker load, podman load, ctr images import
	@packaging/install-deps.sh packaging/image-deps.txt
	@packaging/image.py

build-deps:
	@mkdir -p build
	@packaging/install-deps.sh packaging/build-deps.txt

run: all ## Start Weir and play the reference use case until interrupted (DEMO=--once: to its end)
	@packaging/run.sh $(DEMO)

check: build-deps ## Every test (20 minutes on 2 cores)
	@packaging/install-deps.sh packaging/check-deps.txt packaging/image-deps.txt
	@tests/check.sh

check-long: build-deps ## Tests that take long: kills, swaps, fuzzing, accuracy on real data
	@packaging/install-deps.sh packaging/check-deps.txt packaging/image-deps.txt
	@tests/check.sh --long

install: all ## Install under PREFIX (default /usr/local): programs, manual, documents, completion, units of systemd
	@DESTDIR=$(DESTDIR) cmake --install build/release --prefix $(PREFIX) >build/install.log || { tail -n 3 build/install.log; exit 1; }
	@echo "Weir is in $(DESTDIR)$(PREFIX): weir help, man weir, $(PREFIX)/share/doc/weir/README.md"

uninstall: ## Remove what the last `make install` installed
	@test -f build/release/install_manifest.txt || { echo "build/release/install_manifest.txt is not there: nothing was installed from here"; exit 1; }
	@sed 's|^|$(DESTDIR)|' build/release/install_manifest.txt | xargs -d '\n' rm -f
	@for folder in share/weir share/doc/weir; do ! test -d $(DESTDIR)$(PREFIX)/$$folder || find $(DESTDIR)$(PREFIX)/$$folder -type d -empty -delete; done

format: ## Bring every C file into the house format
	@git ls-files '*.c' '*.h' | xargs clang-format-14 -i

clean:
	@rm -rf build
