"""OCI images for the tests, made of programs of this machine."""
import gzip
import hashlib
import io
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import tarfile

ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


def libraries(path):
    """The libraries that a program or library needs: path in the image → path here."""
    linked = subprocess.run(["ldd", path], capture_output=True, text=True).stdout
    return {name.lstrip("/"): os.path.realpath(name) for name in re.findall(r"(/\S+)", linked)}


def programs(*names):
    """Files of these programs of the machine, with the libraries that they need: path in the image → path here."""
    files = {}
    for name in names:
        path = os.path.realpath(shutil.which(name))
        files["bin/" + name] = path
        files.update(libraries(path))
    return files


def archive(entries):
    """A tar archive of (name, bytes, or the path of a file, or ("link", target))."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, content in entries:
            info = tarfile.TarInfo(name)
            info.mode = 0o755
            if isinstance(content, tuple):
                info.type, info.linkname = tarfile.SYMTYPE, content[1]
                tar.addfile(info)
            else:
                data = content if isinstance(content, bytes) else pathlib.Path(content).read_bytes()
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def make_image(layers, env=(), architecture=ARCHITECTURE):
    """Files of an image layout: path → bytes."""
    files = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}'}

    def put(data):
        digest = hashlib.sha256(data).hexdigest()
        files["blobs/sha256/" + digest] = data
        return {"digest": "sha256:" + digest, "size": len(data)}

    config = put(json.dumps({"architecture": architecture, "os": "linux", "config": {"Env": list(env)}}).encode())
    blobs = [{"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", **put(gzip.compress(archive(layer), 1))}
             for layer in layers]
    manifest = put(json.dumps({"schemaVersion": 2, "config": config, "layers": blobs}).encode())
    files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [manifest]}).encode()
    return files


LEFT_OUT = {"test", "tests", "__pycache__", "idlelib", "lib2to3", "ensurepip", "distutils", "pydoc_data", "unittest", "asyncio",
            "tkinter", "turtledemo", "multiprocessing", "dist-packages"}


def python():
    """The system's Python, without its tests: path in the image → path here; None: there is none."""
    program = "/usr/bin/python3"
    if not os.path.exists(program):
        return None
    version = subprocess.run([program, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True,
                             text=True, check=True).stdout.strip()
    files = {"usr/bin/python3": os.path.realpath(program), **libraries(os.path.realpath(program))}
    for path in pathlib.Path(f"/usr/lib/python{version}").rglob("*"):
        if path.is_file() and not LEFT_OUT & set(path.parts):
            files[str(path).lstrip("/")] = str(path)
            if path.name.startswith(("_ctypes", "_ssl", "_hashlib")) and path.suffix == ".so":
                files.update(libraries(str(path)))
    return files


def pack(files, path):
    """The archive of an image layout."""
    with tarfile.open(path, "w") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
