#!/bin/bash
# check.sh [--long]: builds and runs every test; the last line is "N passed, N failed, N skipped".
#
# Three builds, and what each is for:
#
#   dev    as programs are shipped; warnings are errors: the tests of the whole system and of the page, and of the domains
#          that compute, whose results optimisation could change (weir_numeric_domains in cmake/weir_library.cmake)
#   asan   address and undefined behaviour: the tests of every domain, and the corpora of the fuzzers
#   tsan   the tests with threads of ours, with the reference back-end
#
# A step that fails counts as one failure and the rest still runs, so that one look shows everything. No test is tried
# twice. The tests of the whole system, and those with threads, mostly wait and have deadlines: beside them run the builds
# and the tests that only compute, with what CPU the former leave. Each part begins as soon as what it needs is built.
#
# build/check-times.txt says what each step and test took; at the end it is compared with the last run's on this machine.
set -u
cd "$(dirname "$0")/.." || exit 1
jobs=$(nproc)
is_long=no
[ "${1:-}" = "--long" ] && is_long=yes
passed=0 failed=0 skipped=0
mkdir -p build
rm -f build/check-*.txt
: >build/check-sessions.txt
: >build/check-times.txt

# took SECONDS NAME: a line for build/check-times.txt.
took() { printf '%s %s\n' "$1" "$2" >>build/check-times.txt; }

# count_junit FILE: adds the counts of a ctest JUnit file.
count_junit() {
    local head tests failures skips
    head=$(grep -m1 -A8 '<testsuite' "$1")
    tests=$(grep -oE '\btests="[0-9]+' <<<"$head" | grep -oE '[0-9]+' | head -n 1)
    failures=$(grep -oE '\bfailures="[0-9]+' <<<"$head" | grep -oE '[0-9]+' | head -n 1)
    skips=$(grep -oE '\bskipped="[0-9]+' <<<"$head" | grep -oE '[0-9]+' | head -n 1)
    passed=$((passed + tests - failures - skips)) failed=$((failed + failures)) skipped=$((skipped + skips))
}

# count_step NAME STATUS: counts a check that is not ctest's; exit status 77 means skipped.
count_step() {
    local name=$1 rc=$2 log=build/check-$1.log
    case $rc in
    0) passed=$((passed + 1)) ;;
    77) skipped=$((skipped + 1)); printf 'skipped: %s\n' "$(tail -n 1 "$log")" ;;
    *) failed=$((failed + 1)); printf 'FAILED %s (status %d):\n' "$name" "$rc"; tail -n 60 "$log" ;;
    esac
}

# step NAME COMMAND…: one such check, now.
step() {
    local name=$1 begun=$SECONDS rc
    shift
    printf '== %4d s  %s\n' "$SECONDS" "$name"
    "$@" >"build/check-$name.log" 2>&1
    rc=$?
    took $((SECONDS - begun)) "$name"
    count_step "$name" $rc
}

# calm COMMAND…: runs it with what CPU the tests of the whole system leave. Their servers and tasks are
# sessions of their own, and where the kernel shares out CPU by session (autogroup), "nice" counts only
# within one: so this is a session too, with a nice value of its own.
calm() {
    own_session bash -c '{ echo 19 >/proc/self/autogroup; } 2>/dev/null; exec nice -n 19 "$@"' calm "$@"
}
own_session() {
    setsid "$@" &
    printf '%d\n' $! >>build/check-sessions.txt
    wait $!
}
trap 'trap - TERM; xargs -r -I{} kill -- -{} <build/check-sessions.txt 2>/dev/null; kill 0' INT TERM

# build PRESET TARGET: configure and build; a failure counts as one.
build() {
    local preset=$1 target=$2 log=build/check-$1.log begun=$SECONDS
    printf '== %4d s  build %s\n' "$SECONDS" "$preset"
    if { cmake --preset "$preset" && calm cmake --build --preset "$preset" -j "$jobs" --target "$target"; } >"$log" 2>&1; then
        took $((SECONDS - begun)) "build $preset"
        return 0
    fi
    failed=$((failed + 1))
    printf 'FAILED to build %s:\n' "$preset"
    grep -E 'error|FAILED' "$log" | head -n 40
    return 1
}

# run_tests NAME PRESET CTEST-ARGUMENT…: the counts go to build/check-NAME.xml. With how=calm, calmly.
run_tests() {
    local name=$1 preset=$2
    shift 2
    printf '== %4d s  test %s\n' "$SECONDS" "$name"
    rm -f "build/check-$name.xml"
    ${how:-} ctest --test-dir "build/$preset" --output-on-failure --no-tests=error \
        --output-junit "$PWD/build/check-$name.xml" "$@" 2>&1 |
        tee "build/check-$name.txt" | grep -vE '^ *Start +[0-9]+|^Test project|^Internal ctest'
}

# times NAME…: what the tests of these runs took, a line "SECONDS NAME: TEST" each.
times() {
    local name
    for name in "$@"; do
        [ ! -f "build/check-$name.xml" ] || sed -nE "s/.*<testcase name=\"([^\"]+)\".* time=\"([0-9.]+)\".*/\2 $name: \1/p" "build/check-$name.xml"
    done
}

# compare_times: what takes long, and what takes longer than in the last whole run on this machine, which is kept in
# ${XDG_CACHE_HOME:-~/.cache}/weir.
compare_times() {
    local last=${XDG_CACHE_HOME:-$HOME/.cache}/weir/check-times.txt
    sort -rn -o build/check-times.txt build/check-times.txt
    printf 'The slowest (build/check-times.txt has all):\n'
    head -n 15 build/check-times.txt
    if [ -s "$last" ]; then
        awk '{ seconds = $1; sub(/^[^ ]+ /, "") }
            NR == FNR { before[$0] = seconds; next }
            ($0 in before) && seconds > 1.5 * before[$0] && seconds > before[$0] + 5 {
                printf "  %s: %.0f s, %.0f s before\n", $0, seconds, before[$0] }' "$last" build/check-times.txt >build/check-slower.txt
        [ ! -s build/check-slower.txt ] || { printf 'Slower than in the last run:\n'; cat build/check-slower.txt; }
    fi
    mkdir -p "${last%/*}" && cp build/check-times.txt "$last"
}

# thread_tests: those with threads under each sanitizer whose build is there, beside each other.
thread_tests() {
    local name i names=() rows=()
    [ $is_asan = no ] || names+=(asan-threads:asan)
    [ $is_tsan = no ] || names+=(tsan:tsan)
    export CK_TIMEOUT_MULTIPLIER=4
    for name in "${names[@]}"; do
        run_tests "${name%:*}" "${name#*:}" -j "$jobs" -L threads -LE slow >"build/check-${name%:*}.log" 2>&1 &
        rows+=($!)
    done
    for i in "${!names[@]}"; do
        name=${names[$i]%:*}
        wait "${rows[$i]}"
        cat "build/check-$name.log"
        count_tests "$name"
    done
}

# count_tests NAME: adds what run_tests counted; nothing to be found is a failure.
count_tests() {
    if [ -s "build/check-$1.xml" ]; then count_junit "build/check-$1.xml"; else failed=$((failed + 1)); fi
}

# suite NAME PRESET CTEST-ARGUMENT…: run, and count.
suite() {
    run_tests "$@"
    count_tests "$1"
}

if [ $is_long = no ]; then
    step format tests/lint/format.sh
    is_dev=no is_asan=no is_tsan=no system_job= bare_job= compute_job=
    if build dev check-programs; then
        is_dev=yes
        # The rows of tests/CMakeLists.txt: those of tests that start tasks, and one of the page's.
        run_tests system dev -j 6 -L 'system|browser' -LE slow >build/check-system.log 2>&1 &
        system_job=$!
    fi
    # It waits for packages, builds, and then waits as the system tests do.
    {
        begun=$SECONDS
        own_session tests/bare_debian.sh >build/check-bare-debian.log 2>&1
        rc=$?
        took $((SECONDS - begun)) "bare-debian"
        exit $rc
    } &
    bare_job=$!
    build asan unit-tests && is_asan=yes
    # What only computes takes what CPU the others leave, to the end: the lints below are one process each.
    {
        export how=calm CK_TIMEOUT_MULTIPLIER=4
        # A few of dev's wait for each other's processes and last long here: asan's do not wait for them.
        [ $is_dev = no ] || run_tests dev dev -j "$jobs" -L numeric -LE 'slow|threads' >build/check-dev-tests.log 2>&1 &
        [ $is_asan = no ] || run_tests asan asan -j "$jobs" -LE 'slow|browser|system|threads' >build/check-asan-tests.log 2>&1
        wait
    } &
    compute_job=$!
    build tsan thread-tests && is_tsan=yes
    step tidy calm tests/lint/tidy.py build/dev
    step man tests/lint/man.sh
    step units tests/lint/units.sh
    step docs tests/lint/docs.py
    step words tests/lint/words.py
    step ladders tests/lint/ladders.py
    step comments tests/lint/comments.py
    step scope tests/lint/scope.py
    step dialect tests/lint/dialect.py
    step bundle web/check-bundle.sh
    if [ $is_dev = yes ]; then
        wait "$system_job"
        cat build/check-system.log
        count_tests system
    fi
    # One row of each build: they wait for each other's processes and for time more than they compute.
    thread_tests
    wait "$bare_job"
    count_step bare-debian $?
    wait "$compute_job"
    [ $is_dev = no ] || { cat build/check-dev-tests.log; count_tests dev; }
    [ $is_asan = no ] || { cat build/check-asan-tests.log; count_tests asan; }
    times system dev asan asan-threads tsan >>build/check-times.txt
    took "$SECONDS" "all of it"
    compare_times
else
    build dev all && suite dev dev -j 1 -L slow
    build asan unit-tests && suite asan asan -j 1 -L slow
    step tidy tests/lint/tidy.py build/dev --all
    step release make all
    step fuzz tests/lint/fuzz.sh 60
fi

printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ]
