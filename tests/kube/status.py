"""The Status objects of the API: errors with the reasons, codes and sentences of the real server."""


class Cause:
    """One entry of details.causes."""

    def __init__(self, reason, field, message):
        self.reason, self.field, self.message = reason, field, message

    def record(self):
        return {"reason": self.reason, "message": self.message, "field": self.field}

    def __str__(self):
        return f"{self.field}: {self.message}"


def required(field, detail=""):
    return Cause("FieldValueRequired", field, "Required value" + (f": {detail}" if detail else ""))


def invalid(field, value, detail):
    return Cause("FieldValueInvalid", field, f"Invalid value: {shown(value)}: {detail}")


def wrong_type(field, value, wanted, found):
    """Of a custom resource. A text that is only of another format is shown itself."""
    shown_as = shown(value if wanted == "date-time" and isinstance(value, str) else found)
    return Cause("FieldValueTypeInvalid", field, f"Invalid value: {shown_as}: {field} in body must be of type {wanted}: {shown_as}")


def forbidden_field(field, detail):
    return Cause("FieldValueForbidden", field, f"Forbidden: {detail}")


def duplicate(field, value):
    return Cause("FieldValueDuplicate", field, f"Duplicate value: {shown(value)}")


def not_supported(field, value, supported):
    values = ", ".join(f'"{one}"' for one in sorted(supported))
    return Cause("FieldValueNotSupported", field, f"Unsupported value: {shown(value)}: supported values: {values}")


def not_found_field(field, value):
    return Cause("FieldValueNotFound", field, f"Not found: {shown(value)}")


def shown(value):
    """A value as the server's sentences show it."""
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


class ApiError(Exception):
    """An answer that is an error; `status` is its Status object."""

    def __init__(self, code, reason, message, details=None, headers=(), listing=None):
        super().__init__(message)
        self.code, self.reason, self.message, self.headers = code, reason, message, list(headers)
        self.status = {"kind": "Status", "apiVersion": "v1", "metadata": listing or {}, "status": "Failure",
                       "message": message, "reason": reason, "code": code}
        if details:
            self.status["details"] = details
        if not reason:
            del self.status["reason"]


def qualified(resource):
    """A resource with its group, as sentences name it: pods, jobs.batch."""
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def details_of(resource, name, **more):
    details = {"name": name} if name else {}
    if resource.group:
        details["group"] = resource.group
    details["kind"] = resource.plural
    return {**details, **more}


def not_found(resource, name):
    return ApiError(404, "NotFound", f'{qualified(resource)} "{name}" not found', details_of(resource, name))


def no_such_path():
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(resource, name):
    return ApiError(409, "AlreadyExists", f'{qualified(resource)} "{name}" already exists', details_of(resource, name))


def conflict(resource, name, why):
    sentence = f'Operation cannot be fulfilled on {qualified(resource)} "{name}": {why}'
    return ApiError(409, "Conflict", sentence, details_of(resource, name))


def modified(resource, name):
    return conflict(resource, name, "the object has been modified; please apply your changes to the latest version and try again")


def forbidden(resource, name, why):
    what = f'{qualified(resource)} "{name}"' if name else qualified(resource)
    return ApiError(403, "Forbidden", f"{what} is forbidden: {why}", details_of(resource, name))


def invalid_object(resource, name, causes):
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    text = str(causes[0]) if len(causes) == 1 else "[" + ", ".join(map(str, causes)) + "]"
    details = {"name": name, "group": resource.group, "kind": resource.kind, "causes": [one.record() for one in causes]}
    if not resource.group:
        del details["group"]
    return ApiError(422, "Invalid", f'{kind} "{name}" is invalid: {text}', details)


def bad_patch(value, detail):
    """What a patch that makes no object of the kind is answered."""
    cause = invalid("patch", value, detail)
    return ApiError(422, "Invalid", f' "" is invalid: {cause}', {"causes": [cause.record()]})


def bad_request(message):
    return ApiError(400, "BadRequest", message)


def unauthorized():
    return ApiError(401, "Unauthorized", "Unauthorized")


def method_not_allowed(resource=None, action=""):
    if resource is None:
        return ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})
    return ApiError(405, "MethodNotAllowed", f"{action} is not supported on resources of kind \"{qualified(resource)}\"",
                    details_of(resource, ""))


def not_acceptable():
    return ApiError(406, "NotAcceptable", "only the following media types are accepted: application/json")


def unsupported_media_type(accepted):
    return ApiError(415, "UnsupportedMediaType", "the body of the request was in an unknown format - accepted media types include: "
                    + ", ".join(accepted))


def too_large(limit):
    return ApiError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}")


def expired(message, listing=None):
    return ApiError(410, "Expired", message, listing=listing)


def too_many_requests(message, seconds=None, causes=()):
    """429; without seconds it has no Retry-After."""
    details = {"retryAfterSeconds": seconds} if seconds else {}
    if causes:
        details["causes"] = list(causes)
    return ApiError(429, "TooManyRequests", message, details, [] if seconds is None else [("Retry-After", str(seconds))])


def too_large_version(asked, current):
    details = {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}], "retryAfterSeconds": 1}
    return ApiError(504, "Timeout", f"Timeout: Too large resource version: {asked}, current: {current}", details,
                    [("Retry-After", "1")])


def internal(message):
    return ApiError(500, "InternalError", f"Internal error occurred: {message}", {"causes": [{"message": message}]})


def unavailable():
    return ApiError(503, "ServiceUnavailable", "the server is currently unable to handle the request", {"retryAfterSeconds": 1},
                    [("Retry-After", "1")])


def success(code=200, details=None):
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details:
        status["details"] = details
    if code != 200:
        status["code"] = code
    return status
