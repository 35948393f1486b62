"""The small values of the API: quantities, times, names, labels and selectors of both kinds."""
import datetime
import functools
import operator
import random
import re
from fractions import Fraction

QUANTITY = re.compile(r"^([+-]?(?:\d+\.?\d*|\.\d+))(Ki|Mi|Gi|Ti|Pi|Ei|n|u|m|k|M|G|T|P|E|[eE][+-]?\d+)?$")
QUANTITY_SENTENCE = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
LABEL = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
LABEL_LETTER_FIRST = re.compile(r"^[a-z]([-a-z0-9]*[a-z0-9])?$")
SUBDOMAIN = re.compile(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
QUALIFIED = re.compile(r"^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$")
ENV_NAME = re.compile(r"^[-._a-zA-Z][-._a-zA-Z0-9]*$")
CONFIG_KEY = re.compile(r"^[-._a-zA-Z0-9]+$")
TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$")
MICRO_TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)$")
SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


# ---- quantities -------------------------------------------------------------------------------------

@functools.lru_cache(maxsize=4096)
def amount(quantity):
    """A quantity as an exact number; ValueError when it is none."""
    match = QUANTITY.match(str(quantity))
    if match is None:
        raise ValueError(QUANTITY_SENTENCE)
    number, suffix = Fraction(match[1]), match[2] or ""
    if suffix in BINARY:
        return number * 1024 ** BINARY[suffix]
    exponent = DECIMAL[suffix] if suffix in DECIMAL else int(suffix[1:])
    return number * Fraction(10) ** exponent


def decimal_text(value):
    """The shortest text of a number with a decimal suffix and no fraction; parts of a nano are rounded up."""
    nano = -((-value * 10 ** 9) // 1)
    if nano == 0:
        return "0"
    for suffix, exponent in reversed(DECIMAL.items()):
        mantissa, rest = divmod(nano, 10 ** (exponent + 9))
        if rest == 0:
            return f"{mantissa}{suffix}"
    raise AssertionError("every number is a whole number of nanos")


def binary_text(value):
    if value.denominator != 1 or abs(value) < 1024:
        return decimal_text(value)
    for suffix, power in reversed(BINARY.items()):
        mantissa, rest = divmod(value, 1024 ** power)
        if rest == 0:
            return f"{mantissa}{suffix}"
    return str(value)


@functools.lru_cache(maxsize=4096)
def canonical(quantity):
    """The form in which the server gives a quantity back: 0.5 is 500m, 1024Mi is 1Gi."""
    value = amount(quantity)
    match = QUANTITY.match(str(quantity))
    return binary_text(value) if match[2] in BINARY else decimal_text(value)


def add_amounts(total, more):
    """Add the quantities of one resource list to a dict of numbers."""
    for name, quantity in (more or {}).items():
        total[name] = total.get(name, 0) + amount(quantity)


# ---- times ------------------------------------------------------------------------------------------

def now():
    return datetime.datetime.now(datetime.timezone.utc)


def time_text(when=None):
    return (when or now()).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds_of(text):
    """A time of the API in seconds since 1970."""
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


# ---- names ------------------------------------------------------------------------------------------

def suffix(n=5):
    """Letters as generateName adds them."""
    return "".join(random.choice(SUFFIX_LETTERS) for _ in range(n))


def label_problem(name):
    if len(name) > 63:
        return "must be no more than 63 characters"
    if not LABEL.match(name):
        return ("a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
                "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
                "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')")
    return None


def service_problem(name):
    if len(name) > 63:
        return "must be no more than 63 characters"
    if not LABEL_LETTER_FIRST.match(name):
        return ("a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and "
                "end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
                "'[a-z]([-a-z0-9]*[a-z0-9])?')")
    return None


def subdomain_problem(name):
    if len(name) > 253:
        return "must be no more than 253 characters"
    if not SUBDOMAIN.match(name):
        return ("a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end "
                "with an alphanumeric character (e.g. 'example.com', regex used for validation is "
                "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')")
    return None


def path_segment_problem(name):
    """Names of roles and bindings may have other letters, but must fit in a path."""
    if name in (".", "..") or "/" in name or "%" in name:
        return "may not contain '/' or '%', and may not be '.' or '..'"
    return None


def key_problem(key):
    """What is wrong with the key of a label or annotation."""
    prefix, slash, name = key.rpartition("/")
    if slash and (subdomain_problem(prefix) or not prefix):
        return "prefix part " + (subdomain_problem(prefix) or "must be non-empty")
    if not name:
        return "name part must be non-empty"
    if len(name) > 63:
        return "name part must be no more than 63 characters"
    if not QUALIFIED.match(name):
        return ("name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
                "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
                "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')")
    return None


def label_value_problem(value):
    if len(value) > 63:
        return "must be no more than 63 characters"
    if value and not QUALIFIED.match(value):
        return ("a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end "
                "with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
                "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')")
    return None


# ---- selectors --------------------------------------------------------------------------------------

TERM_SET = re.compile(r"^\s*([^\s!=,()]+)\s+(in|notin)\s+\(([^()]*)\)\s*$")
TERM_EQUAL = re.compile(r"^\s*([^\s!=,()]+)\s*(==|=|!=)\s*([^\s!=,()]*)\s*$")
TERM_EXISTS = re.compile(r"^\s*(!?)\s*([^\s!=,()]+)\s*$")


def split_terms(text):
    """The terms of a selector; commas within parentheses belong to a term."""
    return [term for term in re.split(r",(?![^(]*\))", text) if term.strip()]


def label_term(term):
    """A function of labels that says whether a term holds; ValueError when it is none."""
    if match := TERM_SET.match(term):
        key, values = match[1], {value.strip() for value in match[3].split(",")}
        if match[2] == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if match := TERM_EQUAL.match(term):
        key, value = match[1], match[3]
        if match[2] == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    if match := TERM_EXISTS.match(term):
        key, wanted = match[2], not match[1]
        return lambda labels: (key in labels) == wanted
    raise ValueError(f"unable to parse requirement: found '{term.strip()}', expected: '=', '!=', '==', 'in', notin'")


def label_selector(text):
    """A function of an object that says whether a labelSelector's text selects it."""
    terms = [label_term(term) for term in split_terms(text)]

    def selects(obj):
        labels = obj["metadata"].get("labels") or {}
        return all(term(labels) for term in terms)
    return selects


REQUIREMENTS = {
    "In": lambda labels, key, values: labels.get(key) in values,
    "NotIn": lambda labels, key, values: labels.get(key) not in values,
    "Exists": lambda labels, key, values: key in labels,
    "DoesNotExist": lambda labels, key, values: key not in labels,
}


def matches_selector(selector, labels):
    """Does a LabelSelector object select these labels? None selects nothing, an empty one all."""
    if selector is None:
        return False
    labels = labels or {}
    return all(labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items()) and all(
        REQUIREMENTS[one["operator"]](labels, one["key"], one.get("values") or ())
        for one in selector.get("matchExpressions") or ())


def at_path(obj, path):
    """The value at a path with dots; None when there is none."""
    for part in path.split("."):
        obj = obj.get(part) if isinstance(obj, dict) else None
    return obj


def field_text(obj, path):
    value = at_path(obj, path)
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def field_selector(text, allowed):
    """A function of an object that says whether a fieldSelector's text selects it; `allowed` are the fields it may name."""
    terms = []
    for term in split_terms(text):
        match = re.match(r"^([^!=]+?)(==|=|!=)(.*)$", term)
        if match is None:
            raise ValueError(f"invalid selector: '{text}'; can't understand '{term}'")
        if match[1] not in allowed:
            raise ValueError(f"field label not supported: {match[1]}")
        terms.append((match[1], operator.ne if match[2] == "!=" else operator.eq, match[3]))
    return lambda obj: all(compare(field_text(obj, path), value) for path, compare, value in terms)
