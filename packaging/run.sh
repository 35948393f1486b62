#!/bin/sh
# run.sh: starts Weir with a state folder under build/ and plays the reference use case until
# interrupted. Nothing is left running.
set -eu
cd "$(dirname "$0")/.."
state=$PWD/build/run
mkdir -p "$state"

# In a session of its own: Ctrl-C is for the demo, which still asks the server for its report.
setsid build/weir server --state "$state" --listen 127.0.0.1:0 2>"$state/server.log" &
server=$!
agent_pid() { # the process that holds the agent's lock
    for link in /proc/[0-9]*/fd/*; do
        if [ "$(readlink "$link" 2>/dev/null)" = "$state/agent/lock" ]; then
            pid=${link#/proc/}
            echo "${pid%%/*}"
            return
        fi
    done
}
stop() {
    trap - EXIT INT TERM
    echo "Stopping Weir."
    build/weir delete building-security --state "$state" >/dev/null 2>&1 || true
    tries=0
    while [ $tries -lt 100 ] && build/weir get jobs --state "$state" 2>/dev/null |
        grep -qE ' (PENDING|STARTING|RUNNING|RESTARTING|STOPPING) '; do
        tries=$((tries + 1))
        sleep 0.1
    done
    agent=$(agent_pid)
    [ -z "$agent" ] || kill "$agent" 2>/dev/null || true
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
}
trap stop EXIT
trap 'exit 130' INT TERM

tries=0
until build/weir get nodes --state "$state" >/dev/null 2>&1; do
    if ! kill -0 "$server" 2>/dev/null || [ $tries -gt 100 ]; then
        echo "The server did not start; its log:" >&2
        tail -n 20 "$state/server.log" >&2
        exit 1
    fi
    tries=$((tries + 1))
    sleep 0.1
done

echo "The dashboard (this link works once):"
build/weir login --state "$state"
build/weir demo building-security --state "$state" "$@"
