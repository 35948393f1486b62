#!/bin/sh
# run.sh [DEMO-OPTION…]: starts Weir with a state folder under build/ and plays the reference use case
# until interrupted. Nothing is left running, whatever was started meanwhile.
set -eu
umask 077
cd "$(dirname "$0")/.."
state=$PWD/build/run
mkdir -p "$state"
is_interrupted=no demo='' status=0

# In a session of its own: Ctrl-C is for the demo, which still asks the server for its report.
setsid build/weir server --state "$state" --listen 127.0.0.1:0 2>"$state/server.log" &
server=$!
# shellcheck disable=SC2317 # called by a trap
interrupt() {
    is_interrupted=yes
    [ -z "$demo" ] || kill "$demo" 2>/dev/null || true
}
trap interrupt INT TERM HUP

# Ours is up when server.json names it: before, the file may be another server's.
tries=0
until grep -q "\"pid\": *$server[,}]" "$state/server.json" 2>/dev/null; do
    if ! kill -0 "$server" 2>/dev/null || [ $tries -gt 300 ]; then
        echo "The server did not start; its log:" >&2
        tail -n 20 "$state/server.log" >&2
        kill "$server" 2>/dev/null || true
        exit 1
    fi
    tries=$((tries + 1))
    sleep 0.1
done

if [ $is_interrupted = no ]; then
    echo "Weir runs. Its console:"
    build/weir login --state "$state"
    cat <<END

To talk to this server from another terminal:
    export WEIR_STATE=$state PATH=$PWD/build:\$PATH
Then, once the first decision is there:
    weir get decisions                      # what became of the frames
    weir member deny building-security jane # bar somebody; the next frame knows
    weir trigger building-security training # train again; frames flow on
Ctrl-C ends everything.

END
    # In the background, so that a signal to this script alone is heard at once.
    build/weir demo building-security --state "$state" "$@" &
    demo=$!
    # A trap ends wait early: until the demo has really ended, its report included.
    while kill -0 "$demo" 2>/dev/null; do
        status=0
        wait "$demo" || status=$?
    done
fi

trap '' INT TERM HUP # what follows takes seconds, and ends
echo "Stopping Weir."
build/weir server stop --tasks --state "$state" >"$state/stop.log" 2>&1 || {
    cat "$state/stop.log" >&2
    status=1
}
wait "$server" || true
[ $is_interrupted = no ] || status=0
exit $status
