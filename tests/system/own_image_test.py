"""Weir as an OCI image (packaging/image.py): it is the same each time, holds together, and what lies in its /weir runs in any
root: in the image's own, and in one that has busybox alone and no C library."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

import harness
from harness import Server, wait_until

USER = 65532
# In namespaces of its own, as a pod: the root is read-only but for /tmp, the shared folder, which lies in the jail at the place
# that it has outside, and /run for root: there its agent keeps which user numbers are taken.
JAIL = ('jail=$1 shared=$2 user=$3; shift 3; mkdir -p "$jail$shared" && mount --bind "$jail" "$jail" && '
        'mount -o remount,bind,ro "$jail" && mount -t tmpfs -o mode=1777 tmp "$jail/tmp" && mkdir -p "$jail$shared" && '
        'mount --bind "$shared" "$jail$shared" && mount -t proc proc "$jail/proc" && mount --rbind /dev "$jail/dev" && '
        'if [ "$user" = 0 ]; then mount -t tmpfs run "$jail/run"; fi && '
        'exec chroot --userspec "$user:$user" "$jail" "$@"')


def jailed(jail, shared, *command, user=USER):
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", JAIL, "jail", str(jail), str(shared), str(user), *command]


class OwnImage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        for name, package in (("patchelf", "patchelf"), ("busybox", "busybox-static"), ("unshare", "util-linux")):
            if shutil.which(name) is None:
                raise unittest.SkipTest(f"no {name}: package {package}")
        if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode != 0:
            raise unittest.SkipTest("not root: no root of another system can be entered")
        cls.top = pathlib.Path(tempfile.mkdtemp(prefix="weir-image-"))
        cls.addClassCleanup(shutil.rmtree, cls.top)
        cls.archive = cls.pack("one.tar")
        cls.layout = cls.top / "layout"
        cls.unpack(cls.archive, cls.layout)
        cls.index = cls.read_json("index.json")
        cls.image = cls.read_blob(cls.index["manifests"][0])
        cls.root = cls.top / "root"
        for layer in cls.image["layers"]:
            cls.unpack(cls.place(layer), cls.root)

    @classmethod
    def pack(cls, name):
        subprocess.run([sys.executable, harness.ROOT / "packaging/image.py", "--programs", harness.BIN, "--out", cls.top / name],
                       check=True, capture_output=True)
        return cls.top / name

    @staticmethod
    def unpack(archive, folder):
        folder.mkdir(exist_ok=True)
        subprocess.run(["tar", "-C", folder, "-xpf", archive], check=True)

    @classmethod
    def place(cls, blob):
        return cls.layout / "blobs/sha256" / blob["digest"].partition(":")[2]

    @classmethod
    def read_json(cls, name):
        return json.loads((cls.layout / name).read_text())

    @classmethod
    def read_blob(cls, blob):
        return json.loads(cls.place(blob).read_text())

    def serve(self, jail, *flags, user=USER):
        server = Server()
        self.addCleanup(server.stop)
        os.chown(server.root, 0, user)
        server.root.chmod(0o2771)  # as a volume with fsGroup
        server.program = jailed(jail, server.root, "/weir/bin/weir", user=user)
        return server.start(*flags)

    def run_job(self, server, *command):
        wait_until(lambda: server.get("/nodes")["items"], 30, "the node")
        return server.weir("job", "run", "--follow", "--no-files", "--", *command)[1]

    def test_two_builds_are_one_image(self):
        self.assertEqual(self.archive.read_bytes(), self.pack("two.tar").read_bytes())
        with tarfile.open(self.archive) as tar:
            names = tar.getnames()
        self.assertEqual(names, sorted(names))

    def test_what_the_archive_names_is_there(self):
        """By its digest, for readers of OCI's layout as for docker's."""
        self.assertEqual(self.read_json("oci-layout"), {"imageLayoutVersion": "1.0.0"})
        for blob in (self.index["manifests"][0], self.image["config"], *self.image["layers"]):
            data = self.place(blob).read_bytes()
            self.assertEqual((hashlib.sha256(data).hexdigest(), len(data)), (self.place(blob).name, blob["size"]))
        version = subprocess.run([harness.WEIR, "--version"], capture_output=True, text=True).stdout.split()[1]
        tags = [one["annotations"]["org.opencontainers.image.ref.name"] for one in self.index["manifests"]]
        self.assertEqual(tags, [version, "latest"])
        config = self.read_blob(self.image["config"])
        self.assertEqual(config["config"]["Entrypoint"], ["/weir/bin/weir"])
        self.assertEqual(config["config"]["User"], f"{USER}:{USER}")
        self.assertEqual(config["config"]["Labels"]["org.opencontainers.image.version"], version)
        self.assertEqual(config["rootfs"]["diff_ids"], [layer["digest"] for layer in self.image["layers"]])
        docker = self.read_json("manifest.json")[0]
        self.assertEqual(docker["RepoTags"], [f"weir:{version}", "weir:latest"])
        self.assertEqual([self.layout / path for path in docker["Layers"]], [self.place(layer) for layer in self.image["layers"]])
        self.assertEqual(self.layout / docker["Config"], self.place(self.image["config"]))

    def test_programs_need_nothing_but_the_folder(self):
        """Each library that a program or a library names lies there."""
        files = [path for folder in ("bin", "lib", "lib/ucx") for path in (self.root / "weir" / folder).glob("*") if path.is_file()]
        self.assertGreater(len(files), 10)
        for path in files:
            said = subprocess.run(["readelf", "-d", "-l", path], capture_output=True, text=True).stdout
            for name in re.findall(r"\(NEEDED\).*\[(.*)\]", said):
                self.assertTrue((self.root / "weir/lib" / name).exists(), f"{path} needs {name}")
            for searched in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", said):
                self.assertEqual(searched, "/weir/lib", path)
            if path.parent.name == "bin":
                self.assertRegex(said, r"interpreter: /weir/lib/ld-linux-")

    def test_a_server_runs_in_it_as_a_user_without_rights(self):
        server = self.serve(self.root, "--no-agent")
        self.assertEqual(server.request("GET", "/health", token="")["status"], "ok")
        self.assertEqual((server.state / "server.json").stat().st_uid, USER)
        inside = subprocess.run(jailed(self.root, server.root, "/bin/sh", "-c", f"weir login --state {server.state}"),
                                capture_output=True, text=True,
                                env=dict(one.split("=", 1) for one in self.read_blob(self.image["config"])["config"]["Env"]))
        self.assertIn(server.url + "/login?link=", inside.stdout, inside.stderr)

    def test_its_folder_runs_in_a_root_without_a_c_library(self):
        """An init container copies it there with the image's own cp."""
        jail = self.top / "busybox"
        for name in ("bin", "dev", "proc", "tmp", "target"):
            (jail / name).mkdir(parents=True)
        shutil.copy(self.root / "bin/busybox", jail / "bin/sh")
        (jail / "tmp").chmod(0o1777)
        (jail / "weir").mkdir()
        os.chown(jail / "weir", USER, USER)
        subprocess.run(jailed(self.root, jail / "weir", "/bin/cp", "-r", "/weir/.", str(jail / "weir")), check=True)
        for name in ("weir", "weir-worker"):
            said = subprocess.run(jailed(jail, jail / "target", f"/weir/bin/{name}", "--version"), capture_output=True, text=True)
            self.assertRegex(said.stdout, rf"^{name} \d", said.stderr)
        server = self.serve(jail)
        self.assertIn("a task runs", self.run_job(server, "sh", "-c", "echo a task runs"))
        self.assertRegex(self.run_job(server, "weir-worker", "--version"), r"weir-worker \d")

    def test_a_job_that_is_walled_off_starts_its_programs(self):
        server = self.serve(self.root, user=0)
        said = self.run_job(server, "sh", "-c", "id -u; /weir/bin/weir --version; wc -l </weir/share/ca-certificates.crt")
        if not server.get("/nodes")["items"][0]["inventory"]["isolation"]["mounts"]:
            self.skipTest("no sandboxes here")
        self.assertRegex(said, r"\n[1-9]\d+\nweir \d")
        self.assertRegex(said, r"\n\d{3,}\n")
        self.assertRegex(self.run_job(server, "weir-worker", "--version"), r"weir-worker \d")


if __name__ == "__main__":
    harness.main()
