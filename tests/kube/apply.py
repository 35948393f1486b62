"""Server-side apply, and who manages which field.

A set of fields is a set of paths; a part of a path is ("f", name) for a field, ("k", JSON of the keys) for an element of a
list with keys, or ("v", JSON of the value) for one of a set. A path of a set ends at a value, or at an element of a list.
"""
import json

from . import status, values
from .schema import ListOf, MapOf, Struct

# What no manager owns: it is the server's own.
UNOWNED = {("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace"), ("metadata", "uid"), ("metadata", "selfLink"),
           ("metadata", "resourceVersion"), ("metadata", "generation"), ("metadata", "creationTimestamp"),
           ("metadata", "deletionTimestamp"), ("metadata", "deletionGracePeriodSeconds"), ("metadata", "managedFields"),
           ("metadata", "generateName")}


# Keys of lists that need not be said.
KEY_DEFAULTS = {"protocol": "TCP"}


# ---- paths of an object -----------------------------------------------------------------------------

def element_part(kind, element):
    """How a path names an element of a list."""
    if kind.is_set:
        return ("v", json.dumps(element))
    keys = {key: element.get(key, KEY_DEFAULTS.get(key)) for key in kind.keys}
    return ("k", json.dumps({key: value for key, value in keys.items() if value is not None}, sort_keys=True))


def fields_of(kind, value, path=()):
    """Paths and values of all that an object sets."""
    if isinstance(kind, (Struct, MapOf)) and not kind.is_atomic and isinstance(value, dict) and value:
        for key, one in value.items():
            if not (len(path) < 2 and tuple(part[1] for part in path) + (key,) in UNOWNED):
                inner = kind.fields.get(key) if isinstance(kind, Struct) else kind.element
                yield from fields_of(inner, one, path + (("f", key),))
    elif isinstance(kind, ListOf) and (kind.keys or kind.is_set) and isinstance(value, list) and value:
        for one in value:
            inner = path + (element_part(kind, one),)
            yield inner, ("element",)
            if kind.keys:
                yield from fields_of(kind.element, one, inner)
    elif path:
        yield path, value


def path_text(path):
    """A path as the sentences about conflicts write it: .spec.containers[name="a"].image"""
    text = ""
    for how, part in path:
        if how == "f":
            text += f".{part}"
        elif how == "v":
            text += f"[={part}]"
        else:
            text += "[" + ",".join(f"{key}={json.dumps(value)}" for key, value in json.loads(part).items()) + "]"
    return text


def to_fields(paths):
    """A set of paths as fieldsV1."""
    tree = {}
    for path in sorted(paths):
        at = tree
        for how, part in path:
            at = at.setdefault(f"{how}:{part}", {})
        if path[-1][0] == "k":
            at["."] = {}
    return tree


def from_fields(tree, path=()):
    """The set of paths of a fieldsV1."""
    if not tree and path:
        yield path
    for key, inner in tree.items():
        if key == ".":
            yield path
        else:
            how, _, part = key.partition(":")
            yield from from_fields(inner, path + ((how, part),))


# ---- managers ---------------------------------------------------------------------------------------

def entry(manager, operation, api_version, paths, subresource):
    record = {"manager": manager, "operation": operation, "apiVersion": api_version, "time": values.time_text(),
              "fieldsType": "FieldsV1", "fieldsV1": to_fields(paths)}
    if subresource:
        record["subresource"] = subresource
    return record


def is_of(record, manager, operation, subresource):
    return (record.get("manager"), record.get("operation"), record.get("subresource", "")) == (manager, operation, subresource or "")


def without(record, paths):
    """An entry less some paths; None when nothing is left."""
    left = set(from_fields(record.get("fieldsV1") or {})) - paths
    return {**record, "fieldsV1": to_fields(left)} if left else None


def track_update(kind, old, new, manager, api_version, subresource):
    """Give the fields that changed to the manager that changed them: managedFields of `new` are set."""
    before = dict(fields_of(kind, old)) if old else {}
    after = dict(fields_of(kind, new))
    changed = {path for path, value in after.items() if path not in before or before[path] != value}
    gone = set(before) - set(after)
    records = (old or {}).get("metadata", {}).get("managedFields") or []
    mine = set()
    kept = []
    for record in records:
        if is_of(record, manager, "Update", subresource):
            mine = set(from_fields(record.get("fieldsV1") or {}))
        elif (left := without(record, changed | gone)) is not None:
            kept.append(left)
    mine = (mine | changed) - gone
    if mine:
        kept.append(entry(manager, "Update", api_version, mine, subresource))
    new["metadata"]["managedFields"] = kept
    if not kept:
        del new["metadata"]["managedFields"]


# ---- apply ------------------------------------------------------------------------------------------

def apply(kind, live, config, manager, api_version, subresource, force):
    """The object after a manager has applied its configuration. ApiError: others manage the same fields with other values."""
    applied = dict(fields_of(kind, config))
    live_fields = dict(fields_of(kind, live))
    records = live["metadata"].get("managedFields") or []
    before, others = set(), []
    for record in records:
        if is_of(record, manager, "Apply", subresource):
            before = set(from_fields(record.get("fieldsV1") or {}))
        else:
            others.append((record, set(from_fields(record.get("fieldsV1") or {}))))
    taken = {path for path, value in applied.items() if value != ("element",) and live_fields.get(path) != value}
    conflicts = [(record, path) for record, paths in others for path in sorted(paths & taken)]
    if conflicts and not force:
        raise conflict_error(conflicts)
    owned_by_others = set().union(*(paths for _, paths in others))
    result = merge(kind, live, config)
    for path in sorted(before - set(applied), key=len, reverse=True):
        if not any(other[:len(path)] == path for other in owned_by_others):
            remove_path(kind, result, path)
    kept = [record for record in (without(record, taken) for record, _ in others) if record is not None]
    result["metadata"]["managedFields"] = kept + [entry(manager, "Apply", api_version, set(applied), subresource)]
    return result


def manager_text(record):
    text = json.dumps(record.get("manager", ""))
    if record.get("subresource"):
        text += f" with subresource {json.dumps(record['subresource'])}"
    if record.get("operation") == "Update":
        text += f" using {record.get('apiVersion')}" + (f" at {record['time']}" if record.get("time") else "")
    return text


def conflict_error(conflicts):
    causes = [{"reason": "FieldManagerConflict", "message": f"conflict with {manager_text(record)}", "field": path_text(path)}
              for record, path in conflicts]
    by_manager = {}
    for record, path in conflicts:
        by_manager.setdefault(manager_text(record), []).append(path_text(path))
    if len(conflicts) == 1:
        message = f"Apply failed with 1 conflict: {causes[0]['message']}: {causes[0]['field']}"
    else:
        message = f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(
            f"conflicts with {name}:\n" + "\n".join(f"- {path}" for path in paths) for name, paths in by_manager.items())
    return status.ApiError(409, "Conflict", message, {"causes": causes})


def merge(kind, live, config):
    """The live value with what a configuration sets."""
    if isinstance(kind, (Struct, MapOf)) and not kind.is_atomic and isinstance(config, dict) and isinstance(live, dict):
        result = dict(live)
        for key, one in config.items():
            inner = kind.fields.get(key) if isinstance(kind, Struct) else kind.element
            result[key] = merge(inner, live.get(key), one)
        return result
    if isinstance(kind, ListOf) and (kind.keys or kind.is_set) and isinstance(config, list) and isinstance(live, list):
        return merge_list(kind, live, config)
    return config


def merge_list(kind, live, config):
    result = {element_part(kind, one): one for one in live}
    for one in config:
        part = element_part(kind, one)
        result[part] = merge(kind.element, result.get(part), one)
    return list(result.values())


def remove_path(kind, value, path):
    """Remove what is at a path; what became empty above it stays."""
    for how, part in path[:-1]:
        if how == "f":
            kind = kind.fields.get(part) if isinstance(kind, Struct) else kind.element
            value = value.get(part) if isinstance(value, dict) else None
        else:
            found = [one for one in value if element_part(kind, one) == (how, part)]
            kind, value = kind.element, found[0] if found else None
        if value is None:
            return
    how, part = path[-1]
    if how == "f":
        value.pop(part, None)
    else:
        value[:] = [one for one in value if element_part(kind, one) != (how, part)]
