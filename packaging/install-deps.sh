#!/bin/sh
# install-deps.sh FILE…: installs those packages of the lists that are missing; starts no service. What cannot work is said
# before anything is installed. A line of a list is NAME, or "NAME @12" for a package of Debian 12 alone; "#" begins a comment.
set -eu

if [ "$(uname -s)" != Linux ]; then
    echo "Weir runs on Linux, not on $(uname -s): use a machine or a virtual machine with Debian 12 or 13" >&2
    exit 1
fi
# shellcheck disable=SC1091 # it is the system's
release=$(. /etc/os-release 2>/dev/null && echo "${ID:-} ${VERSION_ID:-}") || release=unknown
wanted=$(sed 's/#.*//' "$@" | awk -v release="${release#* }" 'NF == 1 || $2 == "@" release { print $1 }')
if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "Weir is built with Debian's packages, and this system ($release) has none: use Debian 12 or 13 (a container will do)," >&2
    echo "or install what these bring and run CMake yourself: cmake --preset release && cmake --build --preset release" >&2
    echo "$wanted" >&2
    exit 1
fi

missing=""
for package in $wanted; do
    if [ "$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null)" != "install ok installed" ]; then
        missing="$missing $package"
    fi
done
[ -n "$missing" ] || exit 0
case $release in
"debian 12" | "debian 13") ;;
*) echo "Weir is tested on Debian 12 and 13; this is $release. It goes on with the packages that are here." >&2 ;;
esac

as_root=""
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "These Debian packages are missing:$missing" >&2
        echo "Install them as root: apt-get install$missing" >&2
        exit 1
    fi
    as_root="sudo"
fi
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -qq
unknown=""
for package in $missing; do
    apt-cache show "$package" >/dev/null 2>&1 || unknown="$unknown $package"
done
if [ -n "$unknown" ]; then
    echo "This system ($release) has no package$unknown, so nothing was installed: use Debian 12 or 13 (a container will do)" >&2
    exit 1
fi

# No package may start a service: policy-rc.d answers "forbidden" while we install, unless the
# machine has a policy of its own.
policy=/usr/sbin/policy-rc.d
made_policy=no
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' | $as_root tee "$policy" >/dev/null
    $as_root chmod 755 "$policy"
    made_policy=yes
fi
remove_policy() { [ "$made_policy" = no ] || $as_root rm -f "$policy"; }
trap remove_policy EXIT

echo "Installing:$missing"
# shellcheck disable=SC2086 # a list of words is meant
$as_root apt-get install -y -qq --no-install-recommends $missing >/dev/null
