#!/bin/sh
# tidy.sh BUILD: clang-tidy (.clang-tidy) over every source file of a configured build.
set -eu
build=$1
git ls-files 'src/*.c' 'programs/*.c' 'tools/*.c' | grep -v '_fuzz\.c$' |
    xargs -P "$(nproc)" -n 6 clang-tidy-14 --quiet -p "$build" --extra-arg=-Wno-unknown-warning-option
