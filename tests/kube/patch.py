"""The three patches that change what is there: JSON merge patch, JSON patch and strategic merge patch."""
import json

from . import status
from .schema import ListOf, MapOf, Struct


def merge_patch(target, patch):
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


# ---- JSON patch -------------------------------------------------------------------------------------

class PatchFailed(Exception):
    """An operation has no place to work on, or a test failed."""


def json_patch(target, operations):
    """RFC 6902."""
    if not isinstance(operations, list) or not all(isinstance(one, dict) and "op" in one and "path" in one for one in operations):
        raise status.bad_request("error decoding patch: json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    document = json.loads(json.dumps(target))
    try:
        for operation in operations:
            document = apply_operation(document, operation)
    except (PatchFailed, KeyError, IndexError, ValueError, TypeError) as problem:
        causes = [{"reason": "UnexpectedServerResponse", "message": str(problem)}]
        sentence = "the server rejected our request due to an error in our request"
        raise status.ApiError(422, "Invalid", sentence, {"causes": causes}) from problem
    return document


def apply_operation(document, operation):
    kind, path = operation["op"], tokens(operation["path"])
    if kind == "test":
        if look_up(document, path) != operation["value"]:
            raise PatchFailed(f"testing value {operation['path']} failed")
        return document
    if kind in ("move", "copy"):
        source = tokens(operation["from"])
        value = json.loads(json.dumps(look_up(document, source)))
        if kind == "move":
            take_out(document, source)
        return put_in(document, path, value)
    if kind == "remove":
        take_out(document, path)
        return document
    if kind == "replace":
        look_up(document, path)
        return put_in(document, path, operation["value"], replaces=True)
    if kind == "add":
        return put_in(document, path, operation["value"])
    raise PatchFailed(f"unexpected kind: {kind}")


def tokens(pointer):
    if pointer and not pointer.startswith("/"):
        raise PatchFailed(f"no pointer: {pointer}")
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def look_up(document, path):
    for part in path:
        document = document[int(part)] if isinstance(document, list) else document[part]
    return document


def take_out(document, path):
    parent = look_up(document, path[:-1])
    del parent[int(path[-1]) if isinstance(parent, list) else path[-1]]


def put_in(document, path, value, replaces=False):
    if not path:
        return value
    parent = look_up(document, path[:-1])
    if not isinstance(parent, list):
        parent[path[-1]] = value
    elif replaces:
        parent[int(path[-1])] = value
    else:
        at = len(parent) if path[-1] == "-" else int(path[-1])
        if at > len(parent):
            raise PatchFailed(f"no place {at}")
        parent.insert(at, value)
    return document


# ---- strategic merge patch --------------------------------------------------------------------------

def strategic_patch(kind, target, patch):
    """Lists of known kinds are merged by their key, others replaced."""
    if isinstance(patch, dict):
        return strategic_map(kind, target if isinstance(target, dict) else {}, patch)
    if isinstance(patch, list) and isinstance(kind, ListOf):
        return strategic_list(kind, target or [], patch)
    return patch


def strategic_map(kind, target, patch):
    how = patch.get("$patch")
    if how == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    if how == "delete":
        return {}
    result = dict(target)
    kept = patch.get("$retainKeys")
    if kept is not None:
        result = {key: value for key, value in result.items() if key in kept}
    for key, value in patch.items():
        if key.startswith("$deleteFromPrimitiveList/"):
            name = key.partition("/")[2]
            result[name] = [one for one in result.get(name) or [] if one not in value]
        elif not key.startswith("$") and value is None:
            result.pop(key, None)
        elif not key.startswith("$"):
            result[key] = strategic_patch(inner_kind(kind, key), result.get(key), value)
    return result


def inner_kind(kind, key):
    if isinstance(kind, Struct):
        return kind.fields.get(key)
    return kind.element if isinstance(kind, MapOf) else None


def strategic_list(kind, target, patch):
    if kind.is_set:
        return target + [one for one in patch if one not in target]
    if not kind.keys:
        return patch
    if any(one.get("$patch") == "replace" for one in patch):
        return [one for one in patch if "$patch" not in one]
    key = kind.keys[0]
    result = list(target)
    for one in patch:
        if key not in one:
            raise status.bad_request(f"map: {json.dumps(one)} does not contain declared merge key: {key}")
        at = next((i for i, other in enumerate(result) if other.get(key) == one[key]), None)
        if one.get("$patch") == "delete":
            result = [other for other in result if other.get(key) != one[key]]
        elif at is None:
            result.append(strategic_patch(kind.element, {}, one))
        else:
            result[at] = strategic_patch(kind.element, result[at], one)
    return result
