"""Who asks, and what they may do: bearer tokens, client certificates, and role based access control."""
import threading

from . import resources, status

AUTHENTICATED, UNAUTHENTICATED = "system:authenticated", "system:unauthenticated"
MASTERS = "system:masters"
GROUP = resources.RBAC_GROUP
PUBLIC_PATHS = ["/healthz", "/livez", "/livez/*", "/readyz", "/readyz/*", "/version", "/version/"]
DISCOVERY_PATHS = PUBLIC_PATHS + ["/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*"]


class User:
    def __init__(self, name, groups=(), uid=""):
        self.name, self.groups, self.uid = name, tuple(groups), uid

    def record(self):
        record = {"username": self.name, "groups": list(self.groups)}
        return {**record, "uid": self.uid} if self.uid else record


ANONYMOUS = User("system:anonymous", [UNAUTHENTICATED])


class Tokens:
    """The table of bearer tokens; it may change while the server runs."""

    def __init__(self):
        self.users = {}
        self.lock = threading.Lock()

    def set(self, token, name, groups=(), uid=""):
        with self.lock:
            self.users[token] = User(name, [*groups, AUTHENTICATED], uid)

    def set_service_account(self, token, namespace, name, uid=""):
        self.set(token, f"system:serviceaccount:{namespace}:{name}",
                 ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"], uid)

    def remove(self, token):
        with self.lock:
            self.users.pop(token, None)

    def rotate(self, old, new):
        """The user of a token has another one from now on: the old one is answered 401."""
        with self.lock:
            self.users[new] = self.users.pop(old)

    def user(self, token):
        with self.lock:
            return self.users.get(token)


def identify(tokens, authorization, certificate):
    """The user of a request. ApiError 401: it has a token that nobody has."""
    if certificate is not None:
        return certificate_user(certificate)
    if authorization is None:
        return ANONYMOUS
    scheme, _, token = authorization.partition(" ")
    user = tokens.user(token.strip()) if scheme.lower() == "bearer" else None
    if user is None:
        raise status.unauthorized()
    return user


def certificate_user(certificate):
    """The common name is the user, organisations are its groups."""
    fields = [pair for part in certificate["subject"] for pair in part]
    name = next((value for key, value in fields if key == "commonName"), "")
    return User(name, [value for key, value in fields if key == "organizationName"] + [AUTHENTICATED])


class Question:
    """What somebody wants to do, with a resource or with a path that is none."""

    def __init__(self, verb, group="", resource="", subresource="", namespace="", name="", path=None):
        self.verb, self.group, self.resource, self.subresource = verb, group, resource, subresource
        self.namespace, self.name, self.path = namespace, name, path

    def whole_resource(self):
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource

    def sentence(self, user):
        """Why it is refused, in the words of the server."""
        if self.path is not None:
            return f'User "{user.name}" cannot {self.verb} path "{self.path}"'
        where = f'in the namespace "{self.namespace}"' if self.namespace else "at the cluster scope"
        return f'User "{user.name}" cannot {self.verb} resource "{self.whole_resource()}" in API group "{self.group}" {where}'


def rule_allows(rule, question):
    if not has(rule.get("verbs"), question.verb):
        return False
    if question.path is not None:
        return any(path_matches(pattern, question.path) for pattern in rule.get("nonResourceURLs") or ())
    names = rule.get("resourceNames")
    return has(rule.get("apiGroups"), question.group) and resource_matches(rule.get("resources") or (), question) and (
        not names or question.name in names)


def has(found, value):
    return "*" in (found or ()) or value in (found or ())


def path_matches(pattern, path):
    return pattern in ("*", path) or pattern.endswith("*") and path.startswith(pattern[:-1])


def resource_matches(found, question):
    if "*" in found or question.whole_resource() in found:
        return True
    return bool(question.subresource) and f"*/{question.subresource}" in found


def subject_is(subject, user, namespace):
    if subject["kind"] == "User":
        return subject["name"] == user.name
    if subject["kind"] == "Group":
        return subject["name"] in user.groups
    return user.name == f"system:serviceaccount:{subject.get('namespace') or namespace}:{subject['name']}"


class Authorizer:
    """Answers questions from the roles and bindings that the store has."""

    def __init__(self, store):
        self.store = store

    def allows(self, user, question):
        if MASTERS in user.groups:
            return True
        return any(rule_allows(rule, question) for rule in self.rules(user, question.namespace))

    def check_grant(self, user, resource, obj, namespace):
        """Nobody gives rights that they lack, by a role or a binding, unless they may escalate or bind. ApiError 403."""
        if resource.plural in ("roles", "clusterroles"):
            verb, what, rules = "escalate", resource.plural, obj.get("rules") or ()
        else:
            reference = obj.get("roleRef") or {}
            verb, what = "bind", "clusterroles" if reference.get("kind") == "ClusterRole" else "roles"
            rules = self.role_rules(reference, namespace) if reference.get("kind") and reference.get("name") else ()
        if self.allows(user, Question(verb, GROUP, what, "", namespace, obj["metadata"].get("name", ""))):
            return
        lacking = [rule for rule in rules if not all(self.allows(user, question) for question in questions_of(rule, namespace))]
        if lacking:
            groups = "".join(f'"{group}" ' for group in user.groups).strip()
            raise status.forbidden(resource, obj["metadata"].get("name", ""), f'user "{user.name}" (groups=[{groups}]) is attempting to grant '
                                   "RBAC permissions not currently held:\n" + "\n".join(map(rule_text, lacking)))

    def rules(self, user, namespace):
        """All rules that bindings give a user in a namespace, or in the cluster."""
        for binding in self.store.objects(f"clusterrolebindings.{GROUP}"):
            if any(subject_is(one, user, "") for one in binding.get("subjects") or ()):
                yield from self.role_rules(binding["roleRef"], "")
        if not namespace:
            return
        for binding in self.store.objects(f"rolebindings.{GROUP}", namespace):
            if any(subject_is(one, user, namespace) for one in binding.get("subjects") or ()):
                yield from self.role_rules(binding["roleRef"], namespace)

    def role_rules(self, reference, namespace):
        key = f"clusterroles.{GROUP}" if reference["kind"] == "ClusterRole" else f"roles.{GROUP}"
        item = self.store.get(key, "" if reference["kind"] == "ClusterRole" else namespace, reference["name"])
        return (item.obj.get("rules") or ()) if item else ()

    def check(self, user, question):
        """ApiError 403 when it is not allowed."""
        if self.allows(user, question):
            return
        if question.path is not None:
            raise status.ApiError(403, "Forbidden", f"forbidden: {question.sentence(user)}", {})
        details = {"name": question.name, "group": question.group, "kind": question.resource}
        qualified = f"{question.resource}.{question.group}" if question.group else question.resource
        named = f'{qualified} "{question.name}"' if question.name else qualified
        raise status.ApiError(403, "Forbidden", f"{named} is forbidden: {question.sentence(user)}",
                              {key: value for key, value in details.items() if value})


def questions_of(rule, namespace):
    """All that a rule allows, one by one."""
    for verb in rule.get("verbs") or ():
        for path in rule.get("nonResourceURLs") or ():
            yield Question(verb, path=path)
        for group in rule.get("apiGroups") or ():
            for whole in rule.get("resources") or ():
                resource, _, subresource = whole.partition("/")
                for name in rule.get("resourceNames") or ("",):
                    yield Question(verb, group, resource, subresource, namespace, name)


def rule_text(rule):
    """A rule as the sentence about escalation shows it."""
    parts = (("APIGroups", "apiGroups"), ("Resources", "resources"), ("ResourceNames", "resourceNames"),
             ("NonResourceURLs", "nonResourceURLs"), ("Verbs", "verbs"))
    return "{" + ", ".join(f"{title}:[{' '.join(status.shown(one) for one in rule[key])}]" for title, key in parts if rule.get(key)) + "}"


def bootstrap():
    """The roles and bindings that every cluster has, as (resource key, object)."""
    everything = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, {"verbs": ["*"], "nonResourceURLs": ["*"]}]
    reviews = [{"verbs": ["create"], "apiGroups": ["authorization.k8s.io"],
                "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]}]
    yield from role_and_binding("cluster-admin", everything, [MASTERS])
    yield from role_and_binding("system:discovery", [{"verbs": ["get"], "nonResourceURLs": DISCOVERY_PATHS}], [AUTHENTICATED])
    yield from role_and_binding("system:basic-user", reviews, [AUTHENTICATED])
    yield from role_and_binding("system:public-info-viewer", [{"verbs": ["get"], "nonResourceURLs": PUBLIC_PATHS}],
                                [AUTHENTICATED, UNAUTHENTICATED])


def role_and_binding(name, rules, groups):
    yield f"clusterroles.{GROUP}", {"metadata": {"name": name}, "rules": rules}
    subjects = [{"kind": "Group", "apiGroup": GROUP, "name": group} for group in groups]
    yield f"clusterrolebindings.{GROUP}", {"metadata": {"name": name}, "subjects": subjects,
                                           "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": name}}
