"""Claims and volumes: what binds them, makes volumes where a class does, and makes the claims of ephemeral volumes."""
from . import values
from .loops import Loop

CLASSES, CLAIMS, VOLUMES = "storageclasses.storage.k8s.io", "persistentvolumeclaims", "persistentvolumes"
SELECTED = "volume.kubernetes.io/selected-node"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
COMPLETED = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}


class Volumes(Loop):
    """As the real one: a claim whose class waits for a pod's node (WaitForFirstConsumer) is left alone until a volume names it, or its class
    makes volumes and the claim names a node. One for many nodes may be had by all. On `full_nodes` none can be made: the claim's note is taken away, so that another node is
    chosen. A claim of a class that is not there is bound at once, to a volume that is made for it."""

    def __init__(self, api):
        super().__init__("claim", api)
        self.full_nodes = set()
        self.provision_seconds = 0.0

    def follow(self, resource_key, event):
        if event.new is None:
            if resource_key == CLAIMS and event.old.obj["spec"].get("volumeName"):
                self.add((VOLUMES, "", event.old.obj["spec"]["volumeName"]))
            return
        if resource_key == CLAIMS:
            self.add((CLAIMS, *event.new.key))
        elif resource_key == VOLUMES:
            self.add((VOLUMES, *event.new.key))
            claim = event.new.obj["spec"].get("claimRef")
            if claim:
                self.add((CLAIMS, claim.get("namespace", ""), claim.get("name", "")))
        elif resource_key == "pods" and event.old is None and any(one.get("ephemeral") for one in event.new.obj["spec"].get("volumes") or ()):
            self.add(("pods", *event.new.key))

    def sync(self, key):
        item = self.store.get(*key)
        if item is not None:
            {CLAIMS: self.claim, VOLUMES: self.volume, "pods": self.pod}[key[0]](item.obj)

    def pod(self, pod):
        metadata = pod["metadata"]
        for volume in pod["spec"]["volumes"]:
            name = f"{metadata['name']}-{volume['name']}"
            if volume.get("ephemeral") and self.store.get(CLAIMS, metadata["namespace"], name) is None:
                owner = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"], "controller": True, "blockOwnerDeletion": True}
                template = volume["ephemeral"]["volumeClaimTemplate"]
                self.api.create(self.api.resource(CLAIMS), metadata["namespace"], {
                    "metadata": {**(template.get("metadata") or {}), "name": name, "ownerReferences": [owner]}, "spec": dict(template["spec"])})

    def volume(self, volume):
        claim = volume["spec"].get("claimRef")
        item = self.store.get(CLAIMS, claim.get("namespace", ""), claim.get("name", "")) if claim else None
        is_had = item is not None and item.obj["spec"].get("volumeName") == volume["metadata"]["name"]
        is_over = bool(claim and claim.get("uid")) and (item is None or item.obj["metadata"]["uid"] != claim["uid"])
        phase = "Bound" if is_had else "Released" if is_over else "Available"

        def change(obj):
            if (obj.get("status") or {}).get("phase") == phase:
                return False
            obj["status"] = {"phase": phase}
            return True
        self.api.change(VOLUMES, "", volume["metadata"]["name"], change)

    @staticmethod
    def fits(volume, claim):
        spec, wanted = volume["spec"], claim["spec"]
        amounts = [values.amount(one["storage"]) for one in (spec["capacity"], wanted["resources"]["requests"])]
        return (spec.get("storageClassName", "") == wanted.get("storageClassName", "") and amounts[0] >= amounts[1] and
                set(wanted["accessModes"]) <= set(spec["accessModes"]) and spec.get("volumeMode") == wanted.get("volumeMode"))

    def named(self, claim):
        """The volume that names the claim."""
        metadata = claim["metadata"]
        for volume in self.store.objects(VOLUMES):
            of = volume["spec"].get("claimRef") or {}
            if (of.get("namespace"), of.get("name")) == (metadata["namespace"], metadata["name"]) and of.get("uid") in (None, "", metadata["uid"]):
                return volume
        return None

    def claim(self, claim):
        if claim["spec"].get("volumeName") and claim["status"]["phase"] != "Pending":
            return
        wanted = claim["spec"].get("volumeName")
        volume = self.store.get(VOLUMES, "", wanted) if wanted else None
        volume = volume.obj if volume else self.named(claim)
        if volume is not None or wanted:
            if volume is not None and self.fits(volume, claim):
                self.bind(claim, volume)
            return
        found = self.store.get(CLASSES, "", claim["spec"].get("storageClassName") or "")
        made_by = found.obj["provisioner"] if found else "made-up"
        is_delayed = found is not None and found.obj.get("volumeBindingMode") == "WaitForFirstConsumer"
        node = (claim["metadata"].get("annotations") or {}).get(SELECTED)
        if is_delayed and (made_by == NO_PROVISIONER or not node):
            return
        if node in self.full_nodes:
            self.api.change(CLAIMS, claim["metadata"]["namespace"], claim["metadata"]["name"], lambda obj: obj["metadata"]["annotations"].pop(SELECTED) and None)
        elif made_by == NO_PROVISIONER:
            free = [one for one in self.store.objects(VOLUMES) if not one["spec"].get("claimRef") and self.fits(one, claim)]
            if free:
                self.bind(claim, min(free, key=lambda one: values.amount(one["spec"]["capacity"]["storage"])))
        else:
            self.make(claim, node)

    def make(self, claim, node):
        metadata, spec = claim["metadata"], claim["spec"]
        rule = {"nodeAffinity": {"required": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]}}} if node and "ReadWriteMany" not in spec["accessModes"] else {}
        self.api.create(self.api.resource(VOLUMES), "", {"metadata": {"name": f"pvc-{metadata['uid']}"}, "spec": {
            "capacity": {"storage": spec["resources"]["requests"]["storage"]}, "accessModes": spec["accessModes"],
            "storageClassName": spec.get("storageClassName", ""), "csi": {"driver": "made.up", "volumeHandle": metadata["uid"]},
            "claimRef": {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": metadata["namespace"], "name": metadata["name"], "uid": metadata["uid"]},
            **rule}})

    def bind(self, claim, volume):
        name, metadata = volume["metadata"]["name"], claim["metadata"]

        def take(obj):
            obj["spec"].setdefault("claimRef", {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": metadata["namespace"], "name": metadata["name"]})
            obj["spec"]["claimRef"]["uid"] = metadata["uid"]
            obj["status"] = {"phase": "Bound"}

        def change(obj):
            obj["spec"]["volumeName"] = name
            obj["metadata"].setdefault("annotations", {}).update(COMPLETED)
            obj["status"] = {"phase": "Bound", "accessModes": volume["spec"]["accessModes"], "capacity": volume["spec"]["capacity"]}
        self.api.change(CLAIMS, metadata["namespace"], metadata["name"], change)
        self.api.change(VOLUMES, "", name, take)
