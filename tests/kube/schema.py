"""Which fields each kind has, which are required, and of which types: types.txt, and schemas of custom resources.

A line of types.txt is a type and its fields, `name:type`, or `name!:type` when the field is required. A type is

    str int long bool num any          a scalar, or anything
    time micro qty ios b64             a time, one with exactly six digits of a second, a quantity, an integer or a string, base64
    A|B|C                              one of these strings
    {T}  [T]                           a map, a list
    [T/k,l]  [T/]                      a list whose elements have a key (fields k, l), a list that is a set
    Name                               a type of this file
    T~                                 one value for server-side apply: a manager has it whole

decode() makes of what a client sent an object of a type: unknown fields are left out and named, wrong types refused.
"""
import base64
import binascii
import pathlib
import re

from . import values


class TypeMismatch(Exception):
    """A value is of another type than its field: the whole object is refused."""


class Scalar:
    def __init__(self, name, choices=None):
        self.name, self.choices = name, choices


class ListOf:
    def __init__(self, element, keys=None, is_set=False):
        self.element, self.keys, self.is_set = element, keys, is_set


class MapOf:
    def __init__(self, element):
        self.element = element
        self.is_atomic = False


class Struct:
    """Fields by name; `required` are names of fields; with keeps_unknown, others are let through."""

    def __init__(self, name):
        self.name, self.fields, self.required, self.keeps_unknown = name, {}, set(), False
        self.is_atomic = False


class Report:
    """What decode found beside the object: unknown fields, and values that are none of the allowed ones."""

    def __init__(self):
        self.unknown = []
        self.unsupported = []  # (path, value, choices)


GO_TYPES = {"str": "string", "int": "int32", "long": "int64", "bool": "bool", "num": "float64"}
JSON_TYPES = {str: "string", bool: "bool", int: "number", float: "number", list: "array", dict: "object"}
RANGES = {"int": 2 ** 31, "long": 2 ** 63}
SCALARS = {"str", "int", "long", "bool", "num", "any", "time", "micro", "qty", "ios", "b64"}
ATOMIC_STRUCTS = ("LabelSelector", "ObjectReference", "LocalObjectReference", "NodeSelector", "NodeSelectorTerm", "RoleRef",
                  "KeySelector", "ObjectFieldSelector", "ResourceFieldSelector", "ScopeSelector")


def read_types():
    """All types of types.txt by name."""
    text = (pathlib.Path(__file__).parent / "types.txt").read_text(encoding="ascii")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    lines = re.sub(r"\n\s+", " ", "\n".join(lines)).splitlines()
    definitions = dict(line.split(":", 1) for line in lines)
    types = {name: Struct(name) for name in definitions}
    for name in ATOMIC_STRUCTS:
        types[name].is_atomic = True
    for name, fields in definitions.items():
        for field in fields.split():
            key, kind = field.split(":", 1)
            if key.endswith("!"):
                key = key[:-1]
                types[name].required.add(key)
            types[name].fields[key] = parse_type(kind, types)
    return types


def parse_type(text, types):
    if text.endswith("~"):
        kind = parse_type(text[:-1], types)
        kind.is_atomic = True
        return kind
    if text.startswith("["):
        element, slash, keys = text[1:-1].partition("/")
        return ListOf(parse_type(element, types), keys.split(",") if keys else None, bool(slash) and not keys)
    if text.startswith("{"):
        return MapOf(parse_type(text[1:-1], types))
    if "|" in text:
        return Scalar("str", text.split("|"))
    return Scalar(text) if text in SCALARS else types[text]


TYPES = read_types()


# ---- decoding ---------------------------------------------------------------------------------------

def decode(kind, obj, report):
    """The object as the server understands it. TypeMismatch: it is not of this type."""
    return decode_struct(kind, obj, "", report, kind.name)


def decode_value(kind, value, path, report, owner):
    if isinstance(kind, Scalar):
        return decode_scalar(kind, value, path, report, owner)
    if isinstance(kind, Struct):
        return decode_struct(kind, value, path, report, owner)
    if isinstance(kind, ListOf):
        if not isinstance(value, list):
            raise mismatch(value, path, owner, go_type(kind))
        return [decode_value(kind.element, one, f"{path}[{i}]", report, owner) for i, one in enumerate(value)]
    if not isinstance(value, dict):
        raise mismatch(value, path, owner, go_type(kind))
    return {key: decode_value(kind.element, one, f"{path}.{key}", report, owner) for key, one in value.items()
            if one is not None or kind.element.__class__ is not Scalar}


def decode_struct(kind, value, path, report, owner):
    if not isinstance(value, dict):
        raise mismatch(value, path, owner, f"v1.{kind.name}")
    result = {}
    for key, one in value.items():
        field = kind.fields.get(key)
        inner = f"{path}.{key}" if path else key
        if field is None:
            if kind.keeps_unknown:
                result[key] = one
            else:
                report.unknown.append(inner)
        elif one is not None:
            result[key] = decode_value(field, one, inner, report, kind.name)
    return result


def decode_scalar(kind, value, path, report, owner):
    name = kind.name
    if name == "any":
        return value
    if name in ("time", "micro"):
        return decode_time(name, value, path, owner)
    if name == "qty":
        return decode_quantity(value, path, owner)
    if name == "b64":
        return decode_base64(value, path, owner)
    if name == "ios":
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            raise mismatch(value, path, owner, "intstr.IntOrString")
        return value
    expected = {"str": str, "bool": bool, "num": (int, float)}.get(name, int)
    if not isinstance(value, expected) or isinstance(value, bool) != (name == "bool"):
        raise mismatch(value, path, owner, GO_TYPES[name])
    if name in RANGES and not -RANGES[name] <= value < RANGES[name]:
        raise mismatch(value, path, owner, GO_TYPES[name], f"number {value}")
    if kind.choices and value not in kind.choices:
        report.unsupported.append((path, value, kind.choices))
    return value


def decode_time(name, value, path, owner):
    if not isinstance(value, str):
        raise mismatch(value, path, owner, "string")
    pattern, layout = {"time": (values.TIME, "2006-01-02T15:04:05Z07:00"),
                       "micro": (values.MICRO_TIME, "2006-01-02T15:04:05.000000Z07:00")}[name]
    if not pattern.match(value):
        raise TypeMismatch(f'parsing time "{value}" as "{layout}": cannot parse "{value}" as "2006"')
    return value


def decode_quantity(value, path, owner):
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise mismatch(value, path, owner, "resource.Quantity")
    try:
        return values.canonical(str(value))
    except ValueError as problem:
        raise TypeMismatch(str(problem)) from problem


def decode_base64(value, path, owner):
    if not isinstance(value, str):
        raise mismatch(value, path, owner, "[]uint8")
    try:
        base64.b64decode(value, validate=True)
    except binascii.Error as problem:
        at = next((i for i, letter in enumerate(value) if not re.match(r"[A-Za-z0-9+/=]", letter)), len(value))
        raise TypeMismatch(f"illegal base64 data at input byte {at}") from problem
    return value


def mismatch(value, path, owner, wanted, what=None):
    plain = re.sub(r"\[\d+\]", "", path)
    found = what or JSON_TYPES[type(value)]
    return TypeMismatch(f"json: cannot unmarshal {found} into Go struct field {owner}.{plain} of type {wanted}")


def go_type(kind):
    if isinstance(kind, Struct):
        return f"v1.{kind.name}"
    if isinstance(kind, ListOf):
        return "[]" + go_type(kind.element)
    if isinstance(kind, MapOf):
        return "map[string]" + go_type(kind.element)
    return {"qty": "resource.Quantity", "ios": "intstr.IntOrString", "time": "v1.Time", "micro": "v1.MicroTime",
            "b64": "[]uint8"}.get(kind.name, GO_TYPES.get(kind.name, kind.name))


def wrong_types(kind, value, path=""):
    """(path, value, type) of what is of another type than a custom resource's schema says, as its validation finds it."""
    if isinstance(kind, Struct) and isinstance(value, dict):
        for key in sorted(value):
            if key in kind.fields and key != "metadata" and value[key] is not None:
                yield from wrong_types(kind.fields[key], value[key], f"{path}.{key}" if path else key)
    elif isinstance(kind, ListOf) and isinstance(value, list):
        for i, one in enumerate(value):
            yield from wrong_types(kind.element, one, f"{path}[{i}]")
    elif isinstance(kind, MapOf) and isinstance(value, dict):
        for key, one in value.items():
            yield from wrong_types(kind.element, one, f"{path}.{key}")
    elif not isinstance(kind, Scalar):
        yield path, value, "array" if isinstance(kind, ListOf) else "object"
    elif kind.name == "time" and isinstance(value, str) and not values.TIME.match(value):
        yield path, value, "date-time"
    elif (wanted := OPENAPI_TYPES.get(kind.name)) is not None and openapi_type(value) not in wanted:
        yield path, value, wanted[0]


OPENAPI_TYPES = {"str": ("string",), "time": ("string",), "int": ("integer",), "long": ("integer",), "bool": ("boolean",),
                 "num": ("number", "integer")}


def openapi_type(value):
    return {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}[type(value)]


def missing(kind, value, path=""):
    """Paths of required fields that are absent or empty."""
    if isinstance(kind, Struct) and isinstance(value, dict):
        for key in kind.required:
            if value.get(key) in (None, "", [], {}) and not is_empty_object(kind.fields[key], value.get(key)):
                yield f"{path}.{key}" if path else key
        for key, one in value.items():
            if key in kind.fields:
                yield from missing(kind.fields[key], one, f"{path}.{key}" if path else key)
    elif isinstance(kind, ListOf) and isinstance(value, list):
        for i, one in enumerate(value):
            yield from missing(kind.element, one, f"{path}[{i}]")
    elif isinstance(kind, MapOf) and isinstance(value, dict):
        for key, one in value.items():
            yield from missing(kind.element, one, f"{path}[{key}]")


def is_empty_object(kind, value):
    """An empty object is a value where the field is an object: a selector that selects all."""
    return value == {} and isinstance(kind, Struct)


# ---- custom resources -------------------------------------------------------------------------------

# What of a schema is kept to here; a schema that says more is refused, as it would be looser here than at a real server.
KNOWN = {"description", "type", "format", "title", "enum", "required", "items", "properties", "additionalProperties",
         "x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string", "x-kubernetes-list-map-keys", "x-kubernetes-list-type"}
FORMATS = {None, "int32", "int64", "date-time"}


def custom_type(kind, openapi):
    """The type of a custom resource by its openAPIV3Schema."""
    struct = convert(openapi or {"type": "object"}, kind)
    struct.fields.update({"kind": Scalar("str"), "apiVersion": Scalar("str"), "metadata": TYPES["ObjectMeta"]})
    return struct


def convert(openapi, name):
    more = set(openapi) - KNOWN
    if more or openapi.get("format") not in FORMATS:
        raise NotImplementedError(f"{name}: the stand-in does not keep to {sorted(more) or openapi['format']}")
    if openapi.get("x-kubernetes-int-or-string"):
        return Scalar("ios")
    kind = openapi.get("type")
    if kind == "object":
        return convert_object(openapi, name)
    if kind == "array":
        keys = openapi.get("x-kubernetes-list-map-keys")
        return ListOf(convert(openapi["items"], name), keys, openapi.get("x-kubernetes-list-type") == "set")
    names = {"string": "str", "integer": "int" if openapi.get("format") == "int32" else "long", "boolean": "bool", "number": "num"}
    if kind == "string" and openapi.get("format") == "date-time":
        return Scalar("time")
    return Scalar(names.get(kind, "any"), openapi.get("enum"))


def convert_object(openapi, name):
    if "additionalProperties" in openapi and isinstance(openapi["additionalProperties"], dict):
        return MapOf(convert(openapi["additionalProperties"], name))
    struct = Struct(name)
    struct.keeps_unknown = bool(openapi.get("x-kubernetes-preserve-unknown-fields"))
    struct.required = set(openapi.get("required") or ())
    for key, one in (openapi.get("properties") or {}).items():
        struct.fields[key] = convert(one, key[:1].upper() + key[1:])
    return struct
