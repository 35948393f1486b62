#!/bin/sh
# Every manual page is well-formed scdoc.
set -eu
for page in man/*.scd; do
    scdoc <"$page" >/dev/null || { echo "$page: not well-formed"; exit 1; }
done
