#!/usr/bin/env python3
"""image.py [--programs DIR] [--out FILE]: packs Weir as an OCI image, without a daemon, root or network.

The archive is an OCI layout with docker's manifest.json beside it: docker load, podman load, ctr images import and skopeo
take it. What runs lies in /weir, with each library that it needs and the loader of them: /weir can be copied as a whole
to the same place of any other root, whatever C library that has. The same files make the same digest; times are
SOURCE_DATE_EPOCH, else 0.
"""
import argparse
import glob
import hashlib
import io
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
LIBRARIES = "/weir/lib"
USER = 65532
EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
PROGRAMS = ["weir", "weir-worker"]
OPTIONAL_PROGRAMS = ["weir-demo", "weir-camera"]
# What is opened by name while it runs, and what that needs: a driver of GPUs, which is the node's, wants all parts of this C
# library. UCX looks beside its own library.
SYSTEM = "/usr/lib/" + sysconfig.get_config_var("MULTIARCH")
OPENED = [f"{SYSTEM}/{name}" for name in ("libdl.so.2", "libgcc_s.so.1", "libpthread.so.0", "libresolv.so.2", "librt.so.1",
                                          "libstdc++.so.6", "libutil.so.1", "libonnxruntime.so.1")]
OPENED += ["/usr/local/lib/libonnxruntime.so.1"]
OPENED_OF_UCX = f"{SYSTEM}/ucx/lib*.so.[0-9]"
BUSYBOX = "/bin/busybox"
TOOLS = """sh ash basename cat chmod chown cp cut date dd df dirname du echo env expr false find grep gzip gunzip head hostname id kill
    ln ls mkdir mktemp mv nproc od printf ps pwd readlink realpath rm rmdir sed seq sleep sort stat tail tar tee test timeout
    touch tr true uname uniq vi wc which xargs""".split()
CERTIFICATES = "/etc/ssl/certs"
TEXTS = {
    "etc/passwd": f"root:x:0:0:root:/root:/bin/sh\nweir:x:{USER}:{USER}:Weir:/var/lib/weir:/bin/sh\n",
    "etc/group": f"root:x:0:\nweir:x:{USER}:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
FOLDERS = {"dev": 0o755, "proc": 0o755, "root": 0o700, "run": 0o755, "sys": 0o755, "tmp": 0o1777, "var/tmp": 0o1777}


def say(text):
    print(f"image: {text}", file=sys.stderr)


def fail(text):
    sys.exit(f"image.py: {text}")


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        fail(f"{' '.join(map(str, command))}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


class Layer:
    """Files by their path in the image. A value is bytes, the path of a file here, ("link", target) or ("folder", mode,
    owner)."""

    def __init__(self):
        self.entries = {}

    def add(self, path, content, mode=0o644):
        self.entries[path] = (content, mode)
        for parent in pathlib.PurePath(path).parents:
            if str(parent) not in (".", *self.entries):
                self.entries[str(parent)] = (("folder", 0), 0o755)

    def write(self, file):
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for path, (content, mode) in sorted(self.entries.items()):
                info = tarfile.TarInfo(path)
                info.mode, info.mtime = mode, EPOCH
                if isinstance(content, tuple) and content[0] == "folder":
                    info.type, info.uid, info.gid = tarfile.DIRTYPE, content[1], content[1]
                    tar.addfile(info)
                elif isinstance(content, tuple):
                    info.type, info.linkname, info.mode = tarfile.SYMTYPE, content[1], 0o777
                    tar.addfile(info)
                else:
                    data = content if isinstance(content, bytes) else pathlib.Path(content).read_bytes()
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))


# ---- what is packed --------------------------------------------------------------------------------------------------


def libraries_of(path):
    """Libraries that a program or library needs: their name → where they lie here."""
    found = {}
    for line in run("ldd", path).splitlines():
        match = re.match(r"\s*(\S+) => (\S+)", line)
        if "not found" in line:
            fail(f"{path} needs {line.strip()}")
        if match and match[2].startswith("/"):
            found[match[1]] = match[2]
    return {name: where for name, where in found.items() if not name.startswith("/")}


def patched(path, work, *changes):
    """A copy of a program or library, which looks for libraries in /weir/lib before anywhere else."""
    copy = work / pathlib.Path(path).name
    shutil.copyfile(path, copy)
    run("strip", "--strip-unneeded", copy)
    run("patchelf", *changes, "--force-rpath", "--set-rpath", LIBRARIES, copy)
    return copy.read_bytes()


def opened_libraries(needed):
    """Name below /weir/lib → file, of what is opened while it runs and is here."""
    opened = {os.path.basename(path): path for path in OPENED if os.path.exists(path)}
    if "libucs.so.0" in needed:
        opened |= {"ucx/" + os.path.basename(path): path for path in glob.glob(OPENED_OF_UCX)}
    return opened


def pack_programs(folder, work):
    """The layer of Weir's own programs, and the libraries that they need, by name."""
    layer, needed = Layer(), {}
    for name in PROGRAMS + OPTIONAL_PROGRAMS:
        program = folder / name
        if not program.is_file():
            if name in PROGRAMS:
                fail(f"{program} is not there: build it with make")
            say(f"without {name}: it is not built")
            continue
        needed |= libraries_of(program)
        loader = run("patchelf", "--print-interpreter", program).strip()
        needed[os.path.basename(loader)] = loader
        layer.add(f"weir/bin/{name}", patched(program, work, "--set-interpreter", f"{LIBRARIES}/{os.path.basename(loader)}"),
                  0o755)
    return layer, needed


def pack_libraries(layer, needed, work):
    for name, path in opened_libraries(needed).items():
        needed = needed | libraries_of(path) | {name: path}
    for name, path in needed.items():
        has_own_path = not name.startswith("ld-") and run("patchelf", "--print-rpath", path).strip() != ""
        layer.add(f"weir/lib/{name}", patched(path, work) if has_own_path else os.path.realpath(path), 0o755)


def pack_certificates(layer):
    """The authorities that this machine trusts: one file for all, and one each by the hash of its name."""
    bundle = f"{CERTIFICATES}/ca-certificates.crt"
    if not os.path.exists(bundle):
        return say("without certificates of authorities: Debian package ca-certificates")
    layer.add("weir/share/ca-certificates.crt", bundle)
    layer.add(bundle[1:], bundle)
    for path in glob.glob(CERTIFICATES + "/*"):
        if re.fullmatch(r"[0-9a-f]{8}\.\d+", os.path.basename(path)) and os.path.exists(path):
            layer.add(path[1:], os.path.realpath(path))


def pack_tools(layer):
    if not os.path.exists(BUSYBOX):
        return say("without /bin/sh and tools: Debian package busybox-static")
    if subprocess.run(["ldd", BUSYBOX], capture_output=True).returncode == 0:
        return say(f"without /bin/sh and tools: {BUSYBOX} needs libraries, busybox-static's does not")
    layer.add("bin/busybox", BUSYBOX, 0o755)
    for name in TOOLS:
        layer.add(f"bin/{name}", ("link", "busybox"))


def pack_rest(layer):
    """What a root has to have, and what Weir reads."""
    for path, text in TEXTS.items():
        layer.add(path, text.encode())
    for path, mode in FOLDERS.items():
        layer.add(path, ("folder", 0), mode)
    layer.add("var/lib/weir", ("folder", USER), 0o700)
    layer.add("weir/share/doc/weir/LICENSE", ROOT / "LICENSE")
    layer.add("weir/share/weir/python/weir_mlops.py", ROOT / "src/mlops/weir_mlops.py")
    for path in (ROOT / "examples").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            layer.add(f"weir/share/weir/{path.relative_to(ROOT)}", path, 0o755 if os.access(path, os.X_OK) else 0o644)


# ---- the archive -----------------------------------------------------------------------------------------------------


class Archive:
    """An OCI layout in a folder, and then as one file."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "blobs/sha256").mkdir(parents=True)

    def put(self, name, value):
        (self.folder / name).write_text(json.dumps(value, sort_keys=True))

    def put_blob(self, path, media_type):
        digest = hashlib.sha256()
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
        os.rename(path, self.folder / "blobs/sha256" / digest.hexdigest())
        return {"mediaType": "application/vnd.oci.image." + media_type, "digest": "sha256:" + digest.hexdigest(),
                "size": (self.folder / "blobs/sha256" / digest.hexdigest()).stat().st_size}

    def put_json(self, value, media_type):
        self.put("blob", value)
        return self.put_blob(self.folder / "blob", media_type)

    def put_layer(self, layer):
        with open(self.folder / "blob", "wb") as file:
            layer.write(file)
        return self.put_blob(self.folder / "blob", "layer.v1.tar")

    def write(self, out):
        layer = Layer()
        for path in self.folder.rglob("*"):
            if path.is_file():
                layer.add(str(path.relative_to(self.folder)), path)
        with open(f"{out}.new", "wb") as file:
            layer.write(file)
        os.replace(f"{out}.new", out)


def config_of(version, layers):
    return {
        "architecture": ARCHITECTURES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(EPOCH)),
        "config": {
            "Entrypoint": ["/weir/bin/weir"],
            "Env": ["PATH=/weir/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
            "User": f"{USER}:{USER}",
            "WorkingDir": "/",
            "Labels": {"org.opencontainers.image.title": "Weir", "org.opencontainers.image.version": version},
        },
        "rootfs": {"type": "layers", "diff_ids": [layer["digest"] for layer in layers]},
    }


def pack(archive, layers, version):
    """@return The image's digest."""
    blobs = [archive.put_layer(layer) for layer in layers]
    config = archive.put_json(config_of(version, blobs), "config.v1+json")
    image = archive.put_json({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config,
                              "layers": blobs}, "manifest.v1+json")
    tags = [version, "latest"]
    archive.put("oci-layout", {"imageLayoutVersion": "1.0.0"})
    archive.put("index.json", {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [
        image | {"annotations": {"org.opencontainers.image.ref.name": tag,
                                 "io.containerd.image.name": f"docker.io/library/weir:{tag}"}} for tag in tags]})

    def place(blob):
        return "blobs/sha256/" + blob["digest"].partition(":")[2]
    archive.put("manifest.json", [{"Config": place(config), "RepoTags": [f"weir:{tag}" for tag in tags],
                                   "Layers": [place(blob) for blob in blobs]}])
    return image["digest"]


def main():
    parser = argparse.ArgumentParser(description="Packs Weir as an OCI image.")
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "build/release/programs", help="folder of the programs")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/weir-image.tar")
    args = parser.parse_args()
    if shutil.which("patchelf") is None:
        fail("patchelf is not there: Debian package patchelf")
    version = re.search(r"project\(\s*weir[^)]*VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.I)[1].rstrip(")")
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=args.out.parent) as folder:
        folder = pathlib.Path(folder)
        programs, needed = pack_programs(args.programs, folder)
        rest = Layer()
        pack_libraries(rest, needed, folder)
        for pack_more in (pack_certificates, pack_tools, pack_rest):
            pack_more(rest)
        archive = Archive(folder / "image")
        digest = pack(archive, [rest, programs], version)
        archive.write(args.out)
    print(f"{args.out}: weir:{version} and weir:latest, {args.out.stat().st_size >> 20} MB, {digest}")


if __name__ == "__main__":
    main()
