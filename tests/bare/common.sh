# common.sh: what the parts of bare_debian.sh share, in the bare root. Sourced; the sourcing shell is the first
# process of its namespaces, so every other process there was started by what it ran.

# What is looked at is what is installed and built, not how fast it is.
export QUICKLY="-DCMAKE_C_FLAGS_RELEASE=-O1 -DCMAKE_INTERPROCEDURAL_OPTIMIZATION=OFF"
[ ! -x /check/ccache/run ] || QUICKLY+=" -DWEIR_CCACHE=/check/ccache/run"

fail() { echo "FAILED: $*"; exit 1; }

# Control groups of tasks; their names end with the identity of the folder that holds their agent's attempts.
list_groups() {
    local tasks
    for tasks in /src/weir/build/*/agent/tasks; do
        [ ! -d "$tasks" ] || find /sys/fs/cgroup -type d -name "*@$(stat -c %D "$tasks")-$(printf %x "$(stat -c %i "$tasks")")"
    done
}

remember() { cut -d' ' -f2 /proc/self/mounts | sort >/tmp.mounts; }

# Processes but this one and what it needs to look.
list_processes() {
    local folder pid state
    for folder in /proc/[0-9]*; do
        pid=${folder#/proc/}
        [ "$pid" != 1 ] && [ "$pid" != "$BASHPID" ] || continue
        state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "$folder/status" 2>/dev/null) || continue
        [ -n "$state" ] && [ "$state" != Z ] || continue
        printf '%s %s\n' "$pid" "$(tr '\0' ' ' <"$folder/cmdline" 2>/dev/null)"
    done
}

# Nothing may be left of what ran.
assert_nothing_left() {
    local left
    list_processes >/tmp.processes # no pipe: nothing but this shell may be there
    [ ! -s /tmp.processes ] || fail "$1 left processes:
$(cat /tmp.processes)"
    left=$(awk '$4 == "0A" { print $2 }' /proc/net/tcp /proc/net/tcp6 2>/dev/null)
    [ -z "$left" ] || fail "$1 left listening ports: $left"
    cut -d' ' -f2 /proc/self/mounts | sort | diff /tmp.mounts - || fail "$1 left mounts"
    left=$(ls -A /dev/shm /dev/mqueue 2>/dev/null | grep -v ':$' | grep .) && fail "$1 left shared memory: $left"
    left=$(awk 'NR > 1' /proc/sysvipc/shm) && [ -n "$left" ] && fail "$1 left shared memory: $left"
    left=$(ls -A /tmp) && [ -n "$left" ] && fail "$1 left files in /tmp: $left"
    left=$(list_groups) && [ -n "$left" ] && fail "$1 left control groups: $left"
    echo "nothing is left of $1"
}

# await SECONDS WHAT COMMAND…
await() {
    local until=$((SECONDS + $1)) what=$2
    shift 2
    until "$@"; do
        [ $SECONDS -lt $until ] || fail "not within time: $what"
        sleep 0.2
    done
}
