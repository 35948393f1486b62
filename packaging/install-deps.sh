#!/bin/sh
# install-deps.sh FILE…: installs those packages of the lists that are missing; starts no service.
set -eu

missing=""
for package in $(sed 's/#.*//' "$@"); do
    if [ "$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null)" != "install ok installed" ]; then
        missing="$missing $package"
    fi
done
[ -n "$missing" ] || exit 0

as_root=""
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "These Debian packages are missing:$missing" >&2
        echo "Install them as root: apt-get install$missing" >&2
        exit 1
    fi
    as_root="sudo"
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
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -qq
# shellcheck disable=SC2086 # a list of words is meant
$as_root apt-get install -y -qq --no-install-recommends $missing >/dev/null
