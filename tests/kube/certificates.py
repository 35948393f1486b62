"""Certificates for the server and for clients, made without any program: ECDSA on the curve P-256, in DER and PEM.

It is fast enough for a test (a few milliseconds each) and nothing that should keep a secret: it takes no care of timing.
"""
import base64
import datetime
import hashlib
import secrets

# The curve P-256: its field, the constant b is not needed, its order, and its base point.
P = 2 ** 256 - 2 ** 224 + 2 ** 192 + 2 ** 96 - 1
N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
G = (0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
     0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5)
OIDS = {"ecdsa-with-SHA256": (1, 2, 840, 10045, 4, 3, 2), "ecPublicKey": (1, 2, 840, 10045, 2, 1), "prime256v1": (1, 2, 840, 10045, 3, 1, 7),
        "CN": (2, 5, 4, 3), "O": (2, 5, 4, 10), "basicConstraints": (2, 5, 29, 19), "subjectAltName": (2, 5, 29, 17),
        "keyUsage": (2, 5, 29, 15)}


# ---- the curve --------------------------------------------------------------------------------------

def double(point):
    """Twice a point; points are (x, y, z) with x/z², y/z³ on the curve."""
    x, y, z = point
    s, m = 4 * x * y * y % P, 3 * (x - z * z) * (x + z * z) % P
    x3 = (m * m - 2 * s) % P
    return x3, (m * (s - x3) - 8 * y ** 4) % P, 2 * y * z % P


def add(a, b):
    """The sum of two different points."""
    if a is None:
        return b
    (x1, y1, z1), (x2, y2, z2) = a, b
    u1, u2 = x1 * z2 * z2 % P, x2 * z1 * z1 % P
    s1, s2 = y1 * z2 ** 3 % P, y2 * z1 ** 3 % P
    h, r = (u2 - u1) % P, (s2 - s1) % P
    x3 = (r * r - h ** 3 - 2 * u1 * h * h) % P
    return x3, (r * (u1 * h * h - x3) - s1 * h ** 3) % P, h * z1 * z2 % P


def multiply(k):
    """k times the base point, as (x, y)."""
    result, power = None, (*G, 1)
    while k:
        if k & 1:
            result = add(result, power)
        power = double(power)
        k >>= 1
    x, y, z = result
    inverse = pow(z, -1, P)
    return x * inverse ** 2 % P, y * inverse ** 3 % P


class Key:
    """A private key and its public one."""

    def __init__(self):
        self.secret = secrets.randbelow(N - 1) + 1
        self.public = multiply(self.secret)

    def point(self):
        return b"\x04" + b"".join(one.to_bytes(32, "big") for one in self.public)

    def sign(self, message):
        digest = int.from_bytes(hashlib.sha256(message).digest(), "big")
        k = secrets.randbelow(N - 1) + 1
        r = multiply(k)[0] % N
        s = pow(k, -1, N) * (digest + r * self.secret) % N
        return sequence(integer(r), integer(s))

    def pem(self):
        body = sequence(integer(1), tlv(0x04, self.secret.to_bytes(32, "big")), tlv(0xA0, oid("prime256v1")),
                        tlv(0xA1, bits(self.point())))
        return pem("EC PRIVATE KEY", body)


# ---- DER --------------------------------------------------------------------------------------------

def tlv(tag, body):
    if len(body) < 128:
        return bytes([tag, len(body)]) + body
    length = len(body).to_bytes((len(body).bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + body


def sequence(*parts):
    return tlv(0x30, b"".join(parts))


def integer(value):
    return tlv(0x02, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def bits(body, unused=0):
    return tlv(0x03, bytes([unused]) + body)


def oid(name):
    first, second, *rest = OIDS[name]
    body = bytes([40 * first + second])
    for number in rest:
        digits = [number & 127]
        while number := number >> 7:
            digits.insert(0, 128 | number & 127)
        body += bytes(digits)
    return tlv(0x06, body)


def time(when):
    return tlv(0x18, when.strftime("%Y%m%d%H%M%SZ").encode())


def distinguished(common_name, organisations):
    parts = [("O", one) for one in organisations] + [("CN", common_name)]
    return sequence(*(tlv(0x31, sequence(oid(kind), tlv(0x0C, text.encode()))) for kind, text in parts))


def pem(label, body):
    text = base64.b64encode(body).decode()
    lines = [text[i:i + 64] for i in range(0, len(text), 64)]
    return f"-----BEGIN {label}-----\n" + "\n".join(lines) + f"\n-----END {label}-----\n"


# ---- certificates -----------------------------------------------------------------------------------

def extension(name, value, critical=False):
    flag = tlv(0x01, b"\xff") if critical else b""
    return sequence(oid(name), flag, tlv(0x04, value))


def alternative_names(names, addresses):
    parts = [tlv(0x82, name.encode()) for name in names]
    parts += [tlv(0x87, bytes(map(int, address.split(".")))) for address in addresses]
    return extension("subjectAltName", sequence(*parts))


class Authority:
    """A certificate authority that signs certificates of a day."""

    def __init__(self, name="kubernetes"):
        self.name, self.key = name, Key()
        self.certificate = self.issue(name, key=self.key, is_authority=True)

    def issue(self, common_name, organisations=(), names=(), addresses=(), key=None, is_authority=False):
        """The PEM of a certificate for a key."""
        algorithm = sequence(oid("ecdsa-with-SHA256"))
        now = datetime.datetime.now(datetime.timezone.utc)
        day = datetime.timedelta(days=1)
        extensions = [extension("basicConstraints", sequence(tlv(0x01, b"\xff")) if is_authority else sequence(), True)]
        if is_authority:
            extensions.append(extension("keyUsage", bits(b"\x06", 1), True))
        if names or addresses:
            extensions.append(alternative_names(names, addresses))
        public = sequence(sequence(oid("ecPublicKey"), oid("prime256v1")), bits(key.point()))
        body = sequence(tlv(0xA0, integer(2)), integer(secrets.randbits(63) | 1), algorithm, distinguished(self.name, ()),
                        sequence(time(now - day), time(now + day)), distinguished(common_name, organisations), public,
                        tlv(0xA3, sequence(*extensions)))
        return pem("CERTIFICATE", sequence(body, algorithm, bits(self.key.sign(body))))

    def pair(self, common_name, organisations=(), names=(), addresses=()):
        """(certificate, private key), both PEM."""
        key = Key()
        return self.issue(common_name, organisations, names, addresses, key), key.pem()
