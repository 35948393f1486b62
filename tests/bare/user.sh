#!/bin/bash
# user.sh make|run: the same as a user who is not root, but has sudo.
set -u
. /check/common.sh
case $1 in
make)
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq && apt-get install -y -qq --no-install-recommends make sudo >/dev/null || exit 1
    useradd --create-home ada
    echo 'ada ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/ada
    chown -R ada /src/weir /var/cache/ccache
    su ada -c "cd /src/weir && nice make CONFIGURE='$QUICKLY' && . /check/common.sh && check_install /home/ada/installed"
    ;;
run)
    remember
    su ada -c 'cd /src/weir && packaging/run.sh --once --seconds 2' || fail "packaging/run.sh --once"
    left=$(find /src/weir/build/run -perm /077 | head -n 5)
    [ -z "$left" ] || fail "open to other users: $left"
    assert_nothing_left "packaging/run.sh as a user"
    ;;
esac
