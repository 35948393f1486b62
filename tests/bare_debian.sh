#!/bin/bash
# bare_debian.sh: does a fresh Debian need nothing but what the README says?
#
# Makes a minimal root of Debian 12 and one of Debian 13, copies the sources there, and does in each what a new user
# does, with nothing installed but what the Makefile installs:
#
#   bookworm   as root: `make`; `make run` with a second ION beside it, ended by Ctrl-C in the middle; the tour
#              of the README
#   trixie     as a user with sudo: `make`, and the scenario of `make run` to its end
#
# After each, no process, listening port, mount, shared memory, control group or file in /tmp may be left. Each
# runs in namespaces of its own (mounts, processes, network), so that whatever it leaves ends with them.
# Exits with 77 and the reason where no root can be made. Packages are kept between runs in
# ${XDG_CACHE_HOME:-~/.cache}/weir/debian.
set -u
cd "$(dirname "$0")/.." || exit 1
top=$PWD
work=$top/build/bare
cache=${XDG_CACHE_HOME:-$HOME/.cache}/weir/debian

skip() { echo "$*"; exit 77; }
say() { printf '%4d s  %s\n' $SECONDS "$*"; }

if [ "$(id -u)" -ne 0 ]; then
    sudo -n true 2>/dev/null || skip "no root can be made: neither root nor sudo without a password"
    exec sudo -n "$top/tests/bare_debian.sh" "$@"
fi
command -v debootstrap >/dev/null || skip "no root can be made: debootstrap is not installed"
unshare --mount --pid --fork --net true 2>/dev/null || skip "no root can be made: namespaces are not allowed here"

# ---- the root ------------------------------------------------------------------------------------

# Lines "URI SUITE" of this machine's sources that are Debian's own: a mirror of one release and its updates. Mirrors keep
# all releases.
debian_sources() {
    # shellcheck disable=SC2046 # a list of files is meant
    cat $(ls /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null) /dev/null | awk '
        function emit(  i) { for (i = 1; i <= n_suites; i++) if (suites[i] ~ /^(bookworm|trixie)/) print uri, suites[i] }
        function end() { if (uri ~ /debian/ && has_main) emit(); uri = ""; n_suites = 0; has_main = 0 }
        /^deb / {
            end(); sub(/\[[^]]*\] */, ""); uri = $2; n_suites = 1; suites[1] = $3
            for (i = 4; i <= NF; i++) has_main = has_main || $i == "main"
            end(); next
        }
        /^URIs:/ { uri = $2 }
        /^Suites:/ { n_suites = NF - 1; for (i = 2; i <= NF; i++) suites[i - 1] = $i }
        /^Components:/ { for (i = 2; i <= NF; i++) has_main = has_main || $i == "main" }
        /^[ \t]*$/ || /^Types:/ { end() }
        END { end() }' | sed -E 's/ (bookworm|trixie)/ '"$1"'/' | sort -u
}

# make_root RELEASE: the folder of that name in $work.
make_root() {
    local mirror release=$1
    mirror=$(debian_sources "$release" | awk -v release="$release" '$2 == release { print $1; exit }')
    [ -n "$mirror" ] || skip "no root can be made: no source of Debian 12 or 13 in /etc/apt"
    eval "$(apt-config shell proxy Acquire::http::Proxy)"
    [ -z "${proxy:-}" ] || export http_proxy=$proxy
    mkdir -p "$cache/debootstrap" "$cache/archives/partial" || skip "no root can be made: cannot write $cache"
    # A root as debootstrap made it is good for a week; what changed in Debian since, apt brings.
    local kept=$cache/$release.tar
    if [ -z "$(find "$kept" -mtime -7 2>/dev/null)" ]; then
        debootstrap --variant=minbase --cache-dir="$cache/debootstrap" "$release" "$work/$release" "$mirror" >"$work/debootstrap.log" 2>&1 ||
            skip "no root can be made: $(tail -n 1 "$work/debootstrap.log")"
        tar -C "$work" --numeric-owner -cf "$kept.new" "$release" && mv "$kept.new" "$kept"
    else
        tar -C "$work" --numeric-owner -xf "$kept" || skip "no root can be made: cannot unpack $kept"
    fi
    local root=$work/$release
    # Packages come as they do here: same mirror, same proxy, same authorities.
    rm -f "$root/etc/apt/sources.list.d/"*
    debian_sources "$release" | sed 's/^/deb /; s/$/ main/' >"$root/etc/apt/sources.list"
    {
        apt-config dump Acquire | grep -E '^Acquire::(https?|Retries|Check-Valid-Until)(::| )'
        echo 'APT::Sandbox::User "root";'
        [ ! -s /etc/ssl/certs/ca-certificates.crt ] || echo 'Acquire::https::CAInfo "/etc/host-authorities.crt";'
    } >"$root/etc/apt/apt.conf.d/99host"
    [ ! -s /etc/ssl/certs/ca-certificates.crt ] || cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/host-authorities.crt"
    cp -L /etc/resolv.conf /etc/hosts "$root/etc/" 2>/dev/null
    echo bare >"$root/etc/hostname"
    echo 127.0.1.1 bare >>"$root/etc/hosts"
    # A root that is thrown away needs no sync after each file.
    echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/unsafe-io"
}

# lend_cache FOLDER: this machine's ccache with its libraries, under no name that is looked for: common.sh names it to CMake.
# What an earlier run compiled is then not compiled again. Each header's content is compared, so that one whose package is
# not installed is missed all the same.
lend_cache() {
    local program
    program=$(command -v ccache) || return 0
    mkdir -p "$1"
    # shellcheck disable=SC2046 # a list of files is meant
    cp -L "$program" $(ldd "$program" | grep -oE '/[^ ]+') "$1/"
    cat >"$1/run" <<'END'
#!/bin/sh
cd="${0%/*}"
exec "$cd"/ld-linux*.so.* --library-path "$cd" "$cd/ccache" "$@"
END
    chmod 755 "$1/run"
}

# own_objects RELEASE: the folder of this machine's ccache, if this machine is of that release and the folder is ours. What
# the dev build has compiled is then not compiled again: with its flags (common.sh), the same compiler makes the same.
own_objects() {
    local folder
    # shellcheck disable=SC1091 # it is the system's
    [ "$1" = bookworm ] && [ "$(. /etc/os-release && echo "${VERSION_CODENAME:-}")" = "$1" ] || return 1
    folder=$(ccache -k cache_dir 2>/dev/null) && [ -O "$folder" ] && echo "$folder"
}

# copy_sources ROOT: what git knows of the working tree, changes included.
copy_sources() {
    mkdir -p "$1/src/weir" "$1/check"
    git -c safe.directory="$top" ls-files -z --cached --others --exclude-standard |
        tar --null --files-from=- --ignore-failed-read -cf - 2>/dev/null | tar -C "$1/src/weir" --no-same-owner -xf -
    cp tests/bare/*.sh "$1/check/"
    lend_cache "$1/check/ccache"
    ! own_objects "${1##*/}" >/dev/null || touch "$1/check/as_dev"
    # The tour's commands, as docs/tour.py plays them.
    { echo 'set -m'; sed -n '/<!-- tour: begin/,/<!-- tour: end/s/^\$ //p' README.md; } >"$1/check/tour_commands.sh"
}

# ---- inside --------------------------------------------------------------------------------------

# inside ROOT NETWORK COMMAND…: run in the root, as the first process of its namespaces.
# NETWORK: "net", this machine's (for packages), or "alone".
inside() {
    local root=$1 objects limit="" flags=(--mount --pid --fork --kill-child --ipc --uts)
    objects=$(own_objects "${root##*/}") || { objects=$cache/ccache/${root##*/} limit=CCACHE_MAXSIZE=1G; }
    [ "$2" = net ] || flags+=(--net)
    shift 2
    unshare "${flags[@]}" -- bash -c '
        set -e
        root=$1 cache=$2 objects=$3 limit=$4; shift 4
        hostname bare
        ip link set lo up 2>/dev/null || true
        mount --make-rprivate /
        mount --bind "$root" "$root"
        mount -t proc proc "$root/proc"
        mount --rbind /sys "$root/sys"
        mount -t tmpfs -o mode=755 tmpfs "$root/dev"
        for name in null zero full random urandom tty; do
            touch "$root/dev/$name"; mount --bind "/dev/$name" "$root/dev/$name"
        done
        ln -s /proc/self/fd "$root/dev/fd"
        mkdir "$root/dev/shm" "$root/dev/pts"
        mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
        mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
        ln -s pts/ptmx "$root/dev/ptmx"
        mount --bind "$cache/archives" "$root/var/cache/apt/archives"
        mkdir -p "$objects" "$root/var/cache/ccache"
        mount --bind "$objects" "$root/var/cache/ccache"
        # As on a machine of its own, this root is the top of its namespace: under chroot alone the kernel
        # allows no user namespaces, and Weir would have to do without id-mapped mounts.
        cd "$root"
        mkdir -p old
        pivot_root . old
        exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
            CCACHE_DIR=/var/cache/ccache $limit chroot . /bin/bash -c "umount -l /old && rmdir /old && exec /bin/bash \"\$@\"" inside "$@"' inside "$root" "$cache" "$objects" "$limit" "$@" </dev/null
}

# part NAME ROOT NETWORK COMMAND…: one part of the check; its output is shown if it fails.
part() {
    local name=$1 log=$work/$1.log
    shift
    if inside "$@" >"$log" 2>&1; then
        say "$name: ok"
    else
        say "$name: FAILED; the end of $log:"
        tail -n 50 "$log"
        return 1
    fi
}

clean() { rm -rf --one-file-system "$work/bookworm" "$work/trixie"; }

# weigh N: the nice value of this script's session, if it has one of its own (see calm in check.sh): what
# it compiles is to leave CPU to the tests beside, what it tests has deadlines itself.
weigh() {
    [ "$(ps -o sid= -p $$)" -ne $$ ] || { echo "$1" >/proc/self/autogroup; } 2>/dev/null || true
}

mkdir -p "$work"
exec 9>"$work/lock"
flock -n 9 || skip "no root can be made: another run of this check is at it"
clean
mkdir -p "$cache"
exec 8>"$cache/lock"
flock 8 # one user of the kept packages at a time
for release in bookworm trixie; do
    make_root $release
    say "a minimal Debian, $release: $(chroot "$work/$release" dpkg-query -W | wc -l) packages"
    copy_sources "$work/$release"
done

failed=no
weigh 19
part make "$work/bookworm" net /check/make.sh || failed=yes
part user-make "$work/trixie" net /check/user.sh make || failed=yes
weigh 0
if [ $failed = no ]; then
    part user-run "$work/trixie" alone /check/user.sh run &
    user=$!
    part ctrl-c "$work/bookworm" alone /check/ctrl_c.sh || failed=yes
    part tour "$work/bookworm" alone /check/tour.sh || failed=yes
    wait $user || failed=yes
fi
clean
[ $failed = no ]
