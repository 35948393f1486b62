#!/bin/bash
# fuzz.sh SECONDS: runs each fuzz target that long, starting from its corpus. What ends a target stays
# in build/fuzz/found/: name it well, put it into tests/corpus/TARGET, and mend what it shows.
set -eu
seconds=$1
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz >/dev/null
mkdir -p build/fuzz/found
status=0
for target in $(find build/fuzz/src build/fuzz/tools -type f -name '*_fuzz' -perm -u+x | sort); do
    name=$(basename "$target")
    corpus=tests/corpus/${name#*_}
    work=$(mktemp -d)
    echo "== $name"
    "$target" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 \
        -artifact_prefix="build/fuzz/found/$name-" "$work" "$corpus" ||
        status=1
    rm -rf "$work"
done
exit $status
