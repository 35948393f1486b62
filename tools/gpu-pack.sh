#!/bin/sh
# gpu-pack.sh FOLDER PROGRAM...: packs programs and the shared libraries that they need into
# FOLDER/gpu-pack.tar.xz, for a machine with a GPU that has glibc and no library of ours, and prints
# how to unpack and run them there. A PROGRAM is a file, or the name of a tool or test of the build
# in $WEIR_BUILD (default build/release). nn-bench is always packed.
#
# What the programs load at run time (the driver, cuDNN, NVRTC) is that machine's. glibc is not
# packed: it must be at least as new there as here. `run` in the pack sets the library path. It
# takes that machine's C++ runtime where there is one, since its own libraries may want a newer one.
set -eu

max_bytes=20000000
glibc='^(ld-linux.*|lib(c|m|mvec|pthread|dl|rt|resolv|util|anl|nsl))\.so(\.|$)'
runtime='^lib(stdc\+\+|gcc_s)\.so'

if [ $# -lt 1 ]; then
    sed -n '2,5s/^# //p' "$0" >&2
    exit 2
fi
root=$(cd "$(dirname "$0")/.." && pwd)
build=${WEIR_BUILD:-$root/build/release}
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
pack=$(mktemp -d)
trap 'rm -rf "$pack"' EXIT
mkdir "$pack/bin" "$pack/lib" "$pack/lib-runtime"

find_program() {
    if [ -f "$1" ]; then
        echo "$1"
        return
    fi
    found=$(find "$build" -name "$1" -type f -perm -u+x | head -n 1)
    if [ -z "$found" ]; then
        echo "gpu-pack: there is no program $1 in $build" >&2
        exit 1
    fi
    echo "$found"
}

# Paths of the shared libraries of a program, glibc's left out.
libraries_of() {
    said=$(ldd "$1")
    if echo "$said" | grep 'not found' >&2; then
        echo "gpu-pack: $1 lacks libraries here" >&2
        exit 1
    fi
    echo "$said" | awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }' | while read -r name path; do
        echo "$name" | grep -qE "$glibc" || echo "$path"
    done
}

pack_library() {
    name=$(basename "$1")
    to=lib
    if echo "$name" | grep -qE "$runtime"; then
        to=lib-runtime
    fi
    [ -f "$pack/$to/$name" ] || cp -L "$1" "$pack/$to/$name"
}

pack_program() {
    cp -L "$1" "$pack/bin/"
    strip --strip-debug "$pack/bin/$(basename "$1")"
    list=$(libraries_of "$1")
    for library in $list; do
        pack_library "$library"
    done
}

write_run() {
    cat >"$pack/run" <<'END'
#!/bin/sh
# run PROGRAM [ARGUMENT...]: a program of this pack, with its libraries.
here=$(cd "$(dirname "$0")" && pwd)
path=$here/lib
if ! { ldconfig -p || /sbin/ldconfig -p; } 2>/dev/null | grep -q 'libstdc++\.so\.6'; then
    path=$path:$here/lib-runtime
fi
program=$1
shift
LD_LIBRARY_PATH=$path${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec "$here/bin/$program" "$@"
END
    chmod +x "$pack/run"
}

for name in nn-bench "$@"; do
    program=$(find_program "$name")
    pack_program "$program"
done
write_run
archive=$folder/gpu-pack.tar.xz
tar -C "$pack" --owner=0 --group=0 -cf - . | xz -6 -T1 >"$archive"
bytes=$(stat -c %s "$archive")
if [ "$bytes" -gt "$max_bytes" ]; then
    echo "gpu-pack: $archive has $bytes bytes, more than $max_bytes; leave programs out" >&2
    exit 1
fi
echo "$archive: $bytes bytes, $(find "$pack/lib" "$pack/lib-runtime" -type f | wc -l) libraries," \
    "programs: $(find "$pack/bin" -type f -printf '%f ')"
echo "There:"
echo "    mkdir -p /tmp/gpu-pack && tar -C /tmp/gpu-pack -xJf $(basename "$archive") && /tmp/gpu-pack/run nn-bench --help"
echo "nn-bench for bench/gpu.py: --nn-bench /tmp/gpu-pack/bin/nn-bench --libraries /tmp/gpu-pack/lib"
