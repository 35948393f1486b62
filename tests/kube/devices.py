"""The device plugin of all nodes: which accelerators of its node each container has, from its start to its pod's end."""
from . import pods

RESOURCE = "nvidia.com/gpu"
VARIABLE = "NVIDIA_VISIBLE_DEVICES"


class Unavailable(Exception):
    """The node has not so many left: the kubelet refuses the pod."""


class Devices:
    def __init__(self, store):
        self.store = store
        self.held = {}  # (node, device) → (uid of the pod, name of the container)
        self.choose = sorted  # which of those that are free are given first

    @staticmethod
    def wanted(container):
        return int(((container.get("resources") or {}).get("limits") or {}).get(RESOURCE, 0))

    def all_of(self, node):
        item = self.store.get("nodes", "", node)
        return [f"GPU-{node}-{i}" for i in range(int(item.obj["status"]["allocatable"].get(RESOURCE, 0)))] if item else []

    def forget_ended(self):
        alive = {pod["metadata"]["uid"] for pod in self.store.objects("pods") if not pods.has_ended(pod)}
        self.held = {key: owner for key, owner in self.held.items() if owner[0] in alive}

    def give(self, pod):
        """Give the containers of a pod what they ask for, once: the names of devices by the name of the container."""
        node, uid = pod["spec"]["nodeName"], pod["metadata"]["uid"]
        given = {}
        with self.store.lock:
            self.forget_ended()
            for container in pod["spec"]["containers"]:
                n = self.wanted(container)
                free = [device for device in self.all_of(node) if (node, device) not in self.held]
                if n > len(free):
                    raise Unavailable(f"Allocate failed due to requested number of devices unavailable for {RESOURCE}. Requested: {n}, "
                                      f"Available: {len(free)}, which is unexpected")
                given[container["name"]] = self.choose(free)[:n]
                self.held.update({(node, device): (uid, container["name"]) for device in given[container["name"]]})
        return given

    def environment(self, devices):
        return {VARIABLE: ",".join(devices)} if devices else {}
