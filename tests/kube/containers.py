"""What a container is given: its environment, its mounts realised as folders, its command with these folders' paths."""
import base64
import os
import pathlib
import re

from . import admission, values

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
REFERENCE = re.compile(r"\$\$|\$\(([-._a-zA-Z][-._a-zA-Z0-9]*)\)")
KEYED_PATH = re.compile(r"^metadata\.(labels|annotations)\['([^']+)'\]$")


class NotReady(Exception):
    """Something that the pod needs is not there yet: `reason` and the message are those of the waiting container."""

    def __init__(self, reason, message):
        super().__init__(message)
        self.reason = reason


# ---- values from elsewhere --------------------------------------------------------------------------

def field_value(pod, path):
    """The value of a fieldRef."""
    if match := KEYED_PATH.match(path):
        return (pod["metadata"].get(match[1]) or {}).get(match[2], "")
    if path == "status.hostIP" or path == "status.podIP":
        return "127.0.0.1"
    if path in ("metadata.labels", "metadata.annotations"):
        found = values.at_path(pod, path) or {}
        return "\n".join(f'{key}="{value}"' for key, value in sorted(found.items()))
    return str(values.at_path(pod, path) or "")


def resource_value(pod, reference, container):
    """The value of a resourceFieldRef."""
    named = reference.get("containerName") or container["name"]
    one = next(one for one in admission.containers_of(pod["spec"]) if one["name"] == named)
    which, _, name = reference["resource"].partition(".")
    quantity = ((one.get("resources") or {}).get(which) or {}).get(name, "0")
    return str(-(-values.amount(quantity) // values.amount(reference.get("divisor") or "1")))


def data_of(store, kind, namespace, name):
    """The data of a Secret or ConfigMap as bytes; None when it is not there."""
    item = store.get("secrets" if kind == "secret" else "configmaps", namespace, name)
    if item is None:
        return None
    found = {key: text.encode() for key, text in (item.obj.get("data") or {}).items()} if kind == "configmap" else {}
    encoded = item.obj.get("data" if kind == "secret" else "binaryData") or {}
    return {**found, **{key: base64.b64decode(text) for key, text in encoded.items()}}


def keyed_value(store, pod, kind, reference):
    """The value of a secretKeyRef or configMapKeyRef; None when it is optional and not there."""
    data = data_of(store, kind, pod["metadata"]["namespace"], reference.get("name", ""))
    if data is None:
        if reference.get("optional"):
            return None
        raise NotReady("CreateContainerConfigError", f'{kind} "{reference.get("name", "")}" not found')
    if reference["key"] not in data:
        if reference.get("optional"):
            return None
        where = f"{pod['metadata']['namespace']}/{reference.get('name', '')}"
        raise NotReady("CreateContainerConfigError", f"couldn't find key {reference['key']} in {kind.capitalize()} {where}")
    return data[reference["key"]].decode()


def expand(text, environment):
    """$(NAME) is the variable of that name, when there is one; $$ is a dollar."""
    def one(match):
        if match[0] == "$$":
            return "$"
        return environment.get(match[1], match[0])
    return REFERENCE.sub(one, text)


def environment_of(store, pod, container):
    """The variables that the pod says, and no others."""
    environment = {}
    for source in container.get("envFrom") or []:
        for kind, key in (("secret", "secretRef"), ("configmap", "configMapRef")):
            if source.get(key):
                environment.update(whole_source(store, pod, kind, source[key], source.get("prefix", "")))
    for variable in container.get("env") or []:
        value = variable_value(store, pod, container, variable, environment)
        if value is not None:
            environment[variable["name"]] = value
    return environment


def whole_source(store, pod, kind, reference, prefix):
    data = data_of(store, kind, pod["metadata"]["namespace"], reference.get("name", ""))
    if data is None and not reference.get("optional"):
        raise NotReady("CreateContainerConfigError", f'{kind} "{reference.get("name", "")}" not found')
    return {prefix + key: value.decode() for key, value in (data or {}).items()}


def variable_value(store, pod, container, variable, environment):
    source = variable.get("valueFrom")
    if source is None:
        return expand(variable.get("value", ""), environment)
    if source.get("fieldRef"):
        return field_value(pod, source["fieldRef"]["fieldPath"])
    if source.get("resourceFieldRef"):
        return resource_value(pod, source["resourceFieldRef"], container)
    if source.get("secretKeyRef"):
        return keyed_value(store, pod, "secret", source["secretKeyRef"])
    return keyed_value(store, pod, "configmap", source["configMapKeyRef"])


# ---- volumes ----------------------------------------------------------------------------------------

class Volumes:
    """The volumes of a pod as folders below the pod's folder, or where they are on this machine."""

    def __init__(self, store, pod, folder, claims, make_token):
        self.store, self.pod, self.folder, self.claims, self.make_token = store, pod, folder, claims, make_token
        self.places = {}  # folders by the volume's name

    def realise(self):
        """Make all folders. NotReady when a Secret or ConfigMap is not there."""
        for volume in self.pod["spec"].get("volumes") or []:
            if volume["name"] not in self.places:
                self.places[volume["name"]] = self.place(volume)

    def place(self, volume):
        own = self.folder / "volumes" / volume["name"]
        if volume.get("hostPath"):
            place = pathlib.Path(volume["hostPath"]["path"])
            if volume["hostPath"].get("type") == "DirectoryOrCreate":
                place.mkdir(parents=True, exist_ok=True)
            return place
        if volume.get("nfs"):
            place = self.claims.parent / "nfs" / volume["nfs"]["server"] / volume["nfs"]["path"].strip("/")
            place.mkdir(parents=True, exist_ok=True)
            return place
        if volume.get("persistentVolumeClaim"):
            return self.claim(volume["persistentVolumeClaim"]["claimName"])
        files = self.files(volume)
        own.mkdir(parents=True, exist_ok=True)
        for path, data, mode in files:
            write_file(own / path, data, mode)
        return own

    def claim(self, name):
        namespace = self.pod["metadata"]["namespace"]
        if self.store.get("persistentvolumeclaims", namespace, name) is None:
            raise NotReady("ContainerCreating", f'persistentvolumeclaim "{name}" not found')
        place = self.claims / namespace / name
        place.mkdir(parents=True, exist_ok=True)
        return place

    def files(self, volume):
        """(path, data, mode) of all files that a volume has from the start."""
        if volume.get("secret") is not None:
            source = volume["secret"]
            return self.chosen("secret", source.get("secretName", ""), source, source.get("defaultMode", 0o644))
        if volume.get("configMap") is not None:
            source = volume["configMap"]
            return self.chosen("configmap", source.get("name", ""), source, source.get("defaultMode", 0o644))
        if volume.get("downwardAPI") is not None:
            return self.downward(volume["downwardAPI"], volume["downwardAPI"].get("defaultMode", 0o644))
        if volume.get("projected") is not None:
            mode = volume["projected"].get("defaultMode", 0o644)
            return [one for source in volume["projected"].get("sources") or [] for one in self.projection(source, mode)]
        return []

    def projection(self, source, mode):
        if source.get("secret"):
            return self.chosen("secret", source["secret"].get("name", ""), source["secret"], mode)
        if source.get("configMap"):
            return self.chosen("configmap", source["configMap"].get("name", ""), source["configMap"], mode)
        if source.get("downwardAPI"):
            return self.downward(source["downwardAPI"], mode)
        wanted = source["serviceAccountToken"]
        return [(wanted["path"], self.make_token(self.pod).encode(), 0o600)]

    def chosen(self, kind, name, source, mode):
        data = data_of(self.store, kind, self.pod["metadata"]["namespace"], name)
        if data is None:
            if source.get("optional"):
                return []
            raise NotReady("ContainerCreating", f'{kind} "{name}" not found')
        if not source.get("items"):
            return [(key, value, mode) for key, value in data.items()]
        lacking = [one["key"] for one in source["items"] if one["key"] not in data]
        if lacking and not source.get("optional"):
            raise NotReady("ContainerCreating", f"references non-existent {kind} key: {lacking[0]}")
        return [(one["path"], data[one["key"]], one.get("mode", mode)) for one in source["items"] if one["key"] in data]

    def downward(self, source, mode):
        for one in source.get("items") or []:
            if one.get("fieldRef"):
                text = field_value(self.pod, one["fieldRef"]["fieldPath"])
            else:
                text = resource_value(self.pod, one["resourceFieldRef"], self.pod["spec"]["containers"][0])
            yield one["path"], text.encode(), one.get("mode", mode)


def write_file(path, data, mode):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.chmod(path, mode)


# ---- a container ------------------------------------------------------------------------------------

class Translation:
    """Replaces paths of mounts by the folders that they are, wherever such a path begins in a text."""

    def __init__(self, container, volumes, termination_log, image_paths=None):
        self.folders = dict(image_paths or {})
        self.folders |= {mount["mountPath"].rstrip("/"): self.folder(mount, volumes) for mount in container.get("volumeMounts") or []}
        self.folders[container.get("terminationMessagePath", "/dev/termination-log")] = str(termination_log)
        paths = "|".join(re.escape(path) for path in sorted(self.folders, key=len, reverse=True))
        self.pattern = re.compile(rf"(?<![\w./-])(?:{paths})(?![\w.-])")

    @staticmethod
    def folder(mount, volumes):
        folder = volumes.places[mount["name"]]
        if mount.get("subPath"):
            folder = folder / mount["subPath"]
            if not folder.exists():
                folder.mkdir(parents=True)
        return str(folder)

    def text(self, text):
        return self.pattern.sub(lambda match: self.folders[match[0]], text)


def program_of(path, image_folder):
    """A program that the image has at an absolute path, and this machine has not, is looked for in the image's folder."""
    found = pathlib.Path(image_folder) / pathlib.Path(path).name
    return str(found) if path.startswith("/") and not os.path.exists(path) and found.exists() else path


class Plan:
    """What is started for a container: argv, environment, working folder."""

    def __init__(self, store, pod, container, translation, image_folder, entrypoint, folder):
        said = environment_of(store, pod, container)
        words = (container.get("command") or entrypoint) + (container.get("args") or [])
        command = [expand(one, said) for one in words]
        if not command:
            raise NotReady("CreateContainerError", "failed to generate container spec: failed to generate spec: no command specified")
        self.argv = [translation.text(one) for one in command]
        self.argv[0] = program_of(self.argv[0], image_folder)
        self.environment = {name: translation.text(value) for name, value in said.items()}
        self.environment["PATH"] = f"{image_folder}:{self.environment.get('PATH', DEFAULT_PATH)}"
        self.environment.setdefault("HOSTNAME", pod["spec"].get("hostname") or pod["metadata"]["name"])
        self.folder = folder
        if container.get("workingDir"):
            self.folder = pathlib.Path(translation.text(container["workingDir"]))
        if not self.folder.is_dir():
            self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)
