# common.sh: what the parts of bare_debian.sh share, in the bare root. Sourced; the sourcing shell is the first
# process of its namespaces, so every other process there was started by what it ran.

# What is looked at is what is installed and built, not how fast it is.
# Where this machine's own objects are lent (own_objects in bare_debian.sh), they are those of its dev build.
export QUICKLY="-DCMAKE_INTERPROCEDURAL_OPTIMIZATION=OFF"
if [ -e /check/as_dev ]; then QUICKLY+=" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DWEIR_WERROR=ON"; else QUICKLY+=" -DCMAKE_C_FLAGS_RELEASE=-O1"; fi
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

# check_install FOLDER: `make install DESTDIR=FOLDER` brings what the README says, and all that help, units and manual pages
# name is there. In the sources' folder.
check_install() {
    local to=$1 top=$1/usr/local page name path
    make install DESTDIR="$to" CONFIGURE="$QUICKLY" || fail "make install"
    for page in man/*.scd; do
        name=$(basename "$page" .scd)
        grep -q '^\.TH ' "$top/share/man/man${name##*.}/$name" || fail "$name is no manual page"
    done
    "$top/bin/weir" --version >/dev/null && "$top/bin/weir" doctor --help >/dev/null || fail "the installed weir does not run"
    bash -n "$top/share/bash-completion/completions/weir" || fail "the completion for bash is none"
    for path in bin/weir-worker bin/weir-demo share/zsh/site-functions/_weir share/weir/examples/building-security/ion.yaml \
        share/weir/python/weir_mlops.py lib/libweir_mlops.so include/weir_mlops.h share/doc/weir/examples/models/lenet.yaml; do
        [ -s "$top/$path" ] || fail "$path is not installed"
    done
    # As a program that is installed finds its documents: beside it. A unit and a manual page name the prefix's.
    { "$top/bin/weir" help
      "$top/bin/weir" help all | awk '/^  /' | cut -c3- | sed 's/   *.*//' | while read -r name; do
          # shellcheck disable=SC2086 # a command's words
          "$top/bin/weir" help $name
      done; } | grep -oE "$top/[][A-Za-z0-9_./-]*[a-z]" | sort -u >"$to/named"
    grep -q 'share/doc/weir/README.md' "$to/named" && grep -q '/docs/reference/' "$to/named" || fail "help names no document"
    { sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' "$top"/lib/systemd/system/weir-*.service
      sed -n 's,^Documentation=man:\(.*\)(\([0-9]\)),/usr/local/share/man/man\2/\1.\2,p' "$top"/lib/systemd/system/weir-*.service
      sed 's/\\f[A-Z]//g; s/\\&//g; s/\\//g' "$top"/share/man/man*/* | grep -oE '/usr/local/share/[A-Za-z0-9_./-]*[a-z]'; } | sort -u | sed "s|^|$to|" >>"$to/named"
    [ "$(grep -c . "$to/named")" -ge 20 ] || fail "few paths are named: $(cat "$to/named")"
    while read -r path; do [ -s "$path" ] || fail "$path is named and not there"; done <"$to/named"
    # Pages link each other, and files beside them, as in the sources.
    find "$top/share/doc/weir" -name '*.md' ! -path '*/bench/*' ! -name architecture.md | while read -r page; do
        grep -oE '\]\([^)# ]+' "$page" | cut -c3- | grep -v : | while read -r path; do
            [ -e "$(dirname "$page")/$path" ] || echo "$page: $path"
        done
    done | grep . && fail "links of the installed documents lead nowhere"
    rm "$to/named"
    make uninstall DESTDIR="$to"
    path=$(find "$to" ! -type d) && [ -z "$path" ] || fail "make uninstall left $path"
    echo "make install: everything that is named is there"
}
