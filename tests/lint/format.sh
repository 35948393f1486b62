#!/bin/sh
# Every C file stands in the house format (.clang-format).
set -eu
git ls-files '*.c' '*.h' | xargs clang-format-14 --dry-run --Werror
