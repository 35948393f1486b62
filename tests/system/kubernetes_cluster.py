"""A Kubernetes cluster as an operator prepares it for Weir: the stand-in of tests/kube, which runs pods of Weir's image as processes,
with two nodes of four GPUs each and a namespace for the agents."""
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from tests.kube import cluster  # noqa: E402

from harness import BIN, WEIR  # noqa: E402

NODES = ("n-1", "n-2")
NAMESPACE = "weir"
MODEL = "h200"
WEIRJOBS = "weirjobs.weir.dev"


def image():
    """The name that `make image` gives, and the driver asks for."""
    return "weir:" + subprocess.run([WEIR, "version"], capture_output=True, text=True, check=True).stdout.split()[1]


def install_weirjobs(kube):
    """The definition that `weir cluster manifest` prints; it is served when this returns."""
    text = subprocess.run([WEIR, "cluster", "manifest", "k8s", "--jobs", "-o", "json"], capture_output=True, text=True, check=True).stdout
    definition = next(one for one in json.loads(text)["items"] if one["kind"] == "CustomResourceDefinition")
    kube.create("customresourcedefinitions.apiextensions.k8s.io", definition)
    kube.wait(lambda: kube.api.catalogue.find("weir.dev", "v1", "weirjobs"), 5, "WeirJobs are served")


class Cluster(cluster.Cluster):
    def __init__(self):
        super().__init__(nodes=0, mode="process", images={image(): str(BIN)})

    def start(self):
        super().start()
        for name in NODES:
            self.add_node(name, gpus=4, labels={"nvidia.com/gpu.product": MODEL})
        self.create("namespaces", {"metadata": {"name": NAMESPACE}})
        self.create("serviceaccounts", {"metadata": {"name": "weir-agent"}}, NAMESPACE)

    @property
    def for_server(self):
        """What a server's environment has, so that it finds the cluster."""
        return {"KUBECONFIG": str(self.write_kubeconfig("admin", {"token": cluster.ADMIN_TOKEN}, NAMESPACE))}

    def options(self, folder):
        """Options of `weir cluster add`: pods find a folder of this machine where it is."""
        volumes = json.dumps([{"path": str(folder), "host": str(folder), "writable": True}])
        return {"kubeconfig": self.for_server["KUBECONFIG"], "grace": "5s", "volumes": volumes}
