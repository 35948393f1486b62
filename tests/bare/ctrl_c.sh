#!/bin/bash
# ctrl_c.sh: Ctrl-C in the middle of `make run`, while a second ION serves beside the demo's.
set -u
. /check/common.sh
cd /src/weir || exit 1
export WEIR_STATE=build/run
remember
set -m # a job is a process group, as in a terminal
make run >/run.out 2>&1 &
run=$!
await 300 "the first live decision" grep -q 'first live decision' /run.out

mkdir -m 777 /door2 # open to the replica, whose task has a user of its own
sed 's/^name: building-security/name: door2/; s/steps: [0-9]*/steps: 20/; s,@WORK@,/door2,' \
    examples/building-security/ion.yaml >/door2/ion.yaml
build/weir apply -f /door2/ion.yaml >/dev/null || fail "the second ION is refused"
serves() { build/weir describe ion door2 -o json 2>/dev/null | grep -q '"serving_version": *[1-9]'; }
await 120 "the second ION serves" serves
n=$(list_processes | grep -c 'weir-worker predict')
[ "$n" -ge 2 ] || fail "$n replicas run"

# What it says that one can type works. The training that this starts is interrupted, too.
sed -n 's/^    \(weir [^#]*[^# ]\) *#.*/\1/p' /run.out >/said.sh
[ "$(wc -l </said.sh)" -ge 3 ] || fail "it names few commands: $(cat /said.sh)"
while read -r said; do
    PATH=$PWD/build:$PATH bash -c "$said" >/said.out 2>&1 </dev/null || fail "$said: $(cat /said.out)"
done </said.sh

kill -INT -- "-$run" # what the terminal sends to the foreground process group
wait $run
tail -n 20 /run.out
grep -q '^make: \*\*\*' /run.out && fail "Ctrl-C looks like an error of make"
grep -q '^Stopping Weir.' /run.out || fail "it did not stop in order"
rm -rf /door2
assert_nothing_left "make run after Ctrl-C"
