#!/bin/sh
# The systemd units are understood by systemd: no unknown key, no bad value.
set -eu
command -v systemd-analyze >/dev/null || { echo "no systemd-analyze: the units are not checked"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/bin"
printf '#!/bin/sh\n' >"$dir/bin/weir"
chmod +x "$dir/bin/weir"
for unit in packaging/*.service.in; do
    sed "s,@CMAKE_INSTALL_PREFIX@,$dir,g" "$unit" >"$dir/$(basename "$unit" .in)"
done
# It prints what it does not understand, and exits well all the same.
said=$(systemd-analyze verify --man=no "$dir"/*.service 2>&1) || { echo "$said"; exit 1; }
[ -z "$said" ] || { echo "$said"; exit 1; }
