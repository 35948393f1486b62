#!/bin/bash
# make.sh: the first command of the README on a machine that has nothing. Only `make` itself is not the
# Makefile's to install. What is looked at is what is installed and built, not how fast it is, so it is compiled quickly.
set -eu
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends make >/dev/null
cd /src/weir
nice make CONFIGURE="-DCMAKE_C_FLAGS_RELEASE=-O1 -DCMAKE_INTERPROCEDURAL_OPTIMIZATION=OFF"
build/weir --version
