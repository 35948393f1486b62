#!/bin/bash
# make.sh: the first command of the README on a machine that has nothing. Only `make` itself is not the
# Makefile's to install.
set -eu
. /check/common.sh
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends make >/dev/null
cd /src/weir
nice make CONFIGURE="$QUICKLY"
build/weir --version
check_install /src/installed
