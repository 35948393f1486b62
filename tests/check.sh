#!/bin/bash
# check.sh [--long]: builds and runs every test; the last line is "N passed, N failed, N skipped".
#
# Three builds of the same tests: dev (warnings are errors), asan (address and undefined behaviour)
# and tsan (our own threads, with the reference back-end). A step that fails counts as one failure
# and the rest still runs, so that one look shows everything.
set -u
cd "$(dirname "$0")/.." || exit 1
jobs=$(nproc)
is_long=no
[ "${1:-}" = "--long" ] && is_long=yes
passed=0 failed=0 skipped=0
mkdir -p build

# count_junit FILE: adds the counts of a ctest JUnit file.
count_junit() {
    local head tests failures skips
    head=$(grep -m1 -A8 '<testsuite' "$1")
    tests=$(grep -oE '\btests="[0-9]+' <<<"$head" | grep -oE '[0-9]+' | head -n 1)
    failures=$(grep -oE '\bfailures="[0-9]+' <<<"$head" | grep -oE '[0-9]+' | head -n 1)
    skips=$(grep -oE '\bskipped="[0-9]+' <<<"$head" | grep -oE '[0-9]+' | head -n 1)
    passed=$((passed + tests - failures - skips)) failed=$((failed + failures)) skipped=$((skipped + skips))
}

# step NAME COMMAND…: one check that is not ctest's; exit status 77 means skipped.
step() {
    local name=$1 log rc
    shift
    log=build/check-$name.log
    printf '== %s\n' "$name"
    "$@" >"$log" 2>&1
    rc=$?
    case $rc in
    0) passed=$((passed + 1)) ;;
    77) skipped=$((skipped + 1)); printf 'skipped: %s\n' "$(tail -n 1 "$log")" ;;
    *) failed=$((failed + 1)); printf 'FAILED %s (status %d):\n' "$name" "$rc"; tail -n 60 "$log" ;;
    esac
}

# suite PRESET CTEST-ARGUMENT…: configure, build, run.
suite() {
    local preset=$1 log=build/check-$1.log junit=$PWD/build/check-$1.xml
    shift
    printf '== build %s\n' "$preset"
    if ! { cmake --preset "$preset" && cmake --build --preset "$preset" -j "$jobs"; } >"$log" 2>&1; then
        failed=$((failed + 1))
        printf 'FAILED to build %s:\n' "$preset"
        grep -E 'error|FAILED' "$log" | head -n 40
        return
    fi
    printf '== test %s\n' "$preset"
    rm -f "$junit"
    # Deadlines of real processes can be missed on a machine that is shared: one more try, which shows
    # in the output. A defect fails twice.
    ctest --test-dir "build/$preset" --repeat until-pass:2 --output-on-failure --no-tests=error --output-junit "$junit" "$@" 2>&1 |
        grep -vE '^ *Start +[0-9]+|^Test project|^Internal ctest'
    if [ -s "$junit" ]; then count_junit "$junit"; else failed=$((failed + 1)); fi
}

if [ $is_long = no ]; then
    step format tests/lint/format.sh
    suite dev -j 2 -LE slow
    step tidy tests/lint/tidy.sh build/dev
    step man tests/lint/man.sh
    step docs tests/lint/docs.py
    step bundle web/check-bundle.sh
    suite asan -j 2 -LE 'slow|browser|system'
    suite tsan -j 2 -L threads -LE slow
else
    suite dev -j 1 -L slow
    suite asan -j 1 -L slow
    step fuzz tests/lint/fuzz.sh 60
fi

printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ]
