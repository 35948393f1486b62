#!/usr/bin/env python3
"""api_types.py DOCUMENT.json: the console's types, from the server's OpenAPI document, on standard output.

web/src/api.ts is made by it: tests/system/openapi_test.py --write starts a server, takes its document and
writes the file; without --write it complains when the two differ.
"""
import json
import sys

HEAD = """/**
 * The records as the server sends them, made by web/api_types.py from its OpenAPI document: do not edit.
 *
 * - Every time field ends in _ms in its name and is an RFC 3339 string ("2025-11-21T02:00:00.123Z"), or null for never.
 * - A list answers {"items": [...], "next": cursor | null}; `?cursor=<next>` asks for the following page.
 * - A member with "?" may be missing; one with "| null" is there and may say nothing.
 * - States are words; the page compares and shows them in lower case, an unknown one in a neutral colour.
 */
export type Time = string

export interface List<T> {
    items: T[]
    next: string | null
}
"""
# Names that the browser has already, or that no record has.
NAMES = {"event": "WeirEvent", "error": "ErrorBody", "ION": "Ion"}
WIDTH = 120


def type_name(schema):
    return NAMES.get(schema) or "".join(part.capitalize() for part in schema.replace("_", " ").split())


def plain(schema):
    """The type, without null."""
    if "$ref" in schema:
        return type_name(schema["$ref"].rsplit("/", 1)[1])
    if "allOf" in schema:
        return plain(schema["allOf"][0])
    kind = schema.get("type")
    if kind == "array":
        inner = plain(schema["items"])
        return f"({inner})[]" if " " in inner else f"{inner}[]"
    if kind == "object" and "additionalProperties" in schema:
        return f"Record<string, {plain(schema['additionalProperties'])}>"
    if kind == "object" and "properties" in schema:
        return "{ " + "; ".join(f"{key}: {plain(value)}" for key, value in schema["properties"].items()) + " }"
    if kind == "string":
        return "Time" if schema.get("format") == "date-time" else "string"
    return {"integer": "number", "number": "number", "boolean": "boolean"}.get(kind, "unknown")


def member(name, schema, optional):
    text = plain(schema)
    if schema.get("nullable") and text != "unknown":
        text += " | null"
    line = f"    {name}{'?' if optional else ''}: {text}"
    doc = schema.get("description", "")
    return f"{line} // {doc}" if doc and len(line) + len(doc) + 4 <= WIDTH else f"    /** {doc} */\n{line}" if doc else line


def interface(name, schema):
    optional = schema.get("x-weir-optional", [])
    members = [member(key, value, key in optional) for key, value in sorted(schema["properties"].items())]
    return f"export interface {type_name(name)} {{\n" + "\n".join(members) + "\n}\n"


def routes_of(document):
    """Schema → the routes that answer it, or a list of it."""
    found = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            schema = operation["responses"]["2XX"]["content"].get("application/json", {}).get("schema", {})
            inner = schema.get("properties", {}).get("items", {}).get("items", schema)
            if "$ref" in inner:
                found.setdefault(inner["$ref"].rsplit("/", 1)[1], []).append(f"{method.upper()} {path.replace('/api/v1', '')}")
    return found


def refs_in(value):
    if isinstance(value, dict):
        found = {value["$ref"].rsplit("/", 1)[1]} if "$ref" in value else set()
        return found.union(*(refs_in(inner) for inner in value.values()))
    return set().union(*(refs_in(inner) for inner in value)) if isinstance(value, list) else set()


def answered(document):
    """The schemas that answers have, and those that these have: not what only a body may hold."""
    schemas = document["components"]["schemas"]
    wanted = [ref for operations in document["paths"].values() for operation in operations.values() for ref in refs_in(operation["responses"])]
    found = {}
    while wanted:
        name = wanted.pop()
        if name not in found:
            found[name] = schemas[name]
            wanted += refs_in(schemas[name])
    return found


def types(document):
    routes = routes_of(document)
    parts = [HEAD]
    for name, schema in sorted(answered(document).items(), key=lambda one: type_name(one[0])):
        gets = [route for route in routes.get(name, []) if route.startswith("GET")] or routes.get(name, [])
        parts.append((f"/** {', '.join(gets)} */\n" if gets else "") + interface(name, schema))
    return "\n".join(parts)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        sys.stdout.write(types(json.load(file)))
