"""What a pipeline's own code tells Weir, and asks of it: weir_mlops.h from Python.

    import weir_mlops
    with weir_mlops.open() as mlops:
        mlops.metric("loss", step, loss)
        mlops.kpi("parcels", 120, "1/h")
        mlops.bars("by door", ["north", "south"], [12, 7])
        mlops.distribution("weight", weights)

In a task of an ION nothing need be given. Without a server everything goes into a file of JSON lines.
Nothing here raises because of the server: what goes wrong is in `mlops.error`. The library is looked for
in $WEIR_MLOPS_LIBRARY, beside this file, where Weir is installed, and where the system looks.
"""
import ctypes
import json
import os

_TEXT, _HANDLE = ctypes.c_char_p, ctypes.c_void_p


def _load():
    here = os.path.dirname(os.path.abspath(__file__))
    places = [os.environ.get("WEIR_MLOPS_LIBRARY"), os.path.join(here, "libweir_mlops.so"),
              os.path.join(here, "..", "..", "..", "lib", "libweir_mlops.so.0"), "libweir_mlops.so.0"]
    for place in places:
        if place and (os.path.exists(place) or "/" not in place):
            return ctypes.CDLL(place)
    raise ImportError("libweir_mlops.so.0 is not found: set WEIR_MLOPS_LIBRARY")


class _Options(ctypes.Structure):
    _fields_ = [(name, _TEXT) for name in ("server", "token", "ca_file", "ion", "pipeline", "run", "file")]


_library = _load()
for _name, _result, _arguments in [
        ("open", _HANDLE, [ctypes.POINTER(_Options)]), ("close", ctypes.c_size_t, [_HANDLE, ctypes.c_int64]),
        ("flush", ctypes.c_size_t, [_HANDLE, ctypes.c_int64]), ("has_server", ctypes.c_int, [_HANDLE]),
        ("error", None, [_HANDLE, _TEXT, ctypes.c_size_t]),
        ("metric", ctypes.c_int, [_HANDLE, _TEXT, ctypes.c_int64, ctypes.c_double]),
        ("kpi", ctypes.c_int, [_HANDLE, _TEXT, ctypes.c_double, _TEXT]),
        ("statistic", ctypes.c_int, [_HANDLE, _TEXT, _TEXT, _TEXT]),
        ("distribution", ctypes.c_int, [_HANDLE, _TEXT, ctypes.POINTER(ctypes.c_double), ctypes.c_size_t]),
        ("alert", ctypes.c_int, [_HANDLE, _TEXT, _TEXT, ctypes.c_int, _TEXT]),
        ("feedback", ctypes.c_int, [_HANDLE, _TEXT, _TEXT]),
        ("publish_model", ctypes.c_int, [_HANDLE, _TEXT, _TEXT, _TEXT, _TEXT, ctypes.POINTER(ctypes.c_int64)]),
        ("last_approved_model", ctypes.c_int, [_HANDLE, _TEXT, _TEXT, ctypes.POINTER(ctypes.c_int64)]),
        ("get", _HANDLE, [_HANDLE, _TEXT]),
        ("send_file", ctypes.c_int, [_HANDLE, _TEXT, ctypes.POINTER(ctypes.c_size_t)])]:
    _function = getattr(_library, "weir_mlops_" + _name)
    _function.restype, _function.argtypes = _result, _arguments

_free = ctypes.CDLL(None).free
_free.argtypes = [_HANDLE]


def _bytes(text):
    return None if text is None else os.fspath(text).encode() if not isinstance(text, bytes) else text


class Mlops:
    """A handle. Methods that tell return True if the record was taken."""

    def __init__(self, **options):
        self._handle = _library.weir_mlops_open(_Options(**{name: _bytes(text) for name, text in options.items()}))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self, timeout=5.0):
        """Send what waits. Returns how many records were lost; error says why from then on. Once more does nothing."""
        if self._handle is None:
            return 0
        self._last_error = self.error
        handle, self._handle = self._handle, None
        lost = _library.weir_mlops_close(handle, int(timeout * 1000))
        if lost > 0 and not self._last_error:
            self._last_error = f"{lost} records were not sent within {timeout} s"
        return lost

    def flush(self, timeout=5.0):
        """Returns how many records still wait."""
        return _library.weir_mlops_flush(self._handle, int(timeout * 1000))

    @property
    def has_server(self):
        return bool(_library.weir_mlops_has_server(self._handle))

    @property
    def error(self):
        if self._handle is None:
            return self._last_error
        out = ctypes.create_string_buffer(512)
        _library.weir_mlops_error(self._handle, out, len(out))
        return out.value.decode(errors="replace")

    # ---- what is told

    def metric(self, key, step, value):
        return _library.weir_mlops_metric(self._handle, _bytes(key), step, value) == 0

    def kpi(self, name, value, unit=None):
        return _library.weir_mlops_kpi(self._handle, _bytes(name), value, _bytes(unit)) == 0

    def statistic(self, name, kind, value):
        """kind: number, text, lines, bars, table, graph, heat-map, distribution, opaque."""
        return _library.weir_mlops_statistic(self._handle, _bytes(name), _bytes(kind), json.dumps(value).encode()) == 0

    def number(self, name, value):
        return self.statistic(name, "number", value)

    def lines(self, name, **values):
        return self.statistic(name, "lines", values)

    def bars(self, name, labels, values):
        return self.statistic(name, "bars", {"labels": list(labels), "values": list(values)})

    def table(self, name, columns, rows):
        return self.statistic(name, "table", {"columns": list(columns), "rows": [list(row) for row in rows]})

    def graph(self, name, x, **y):
        return self.statistic(name, "graph", {"x": list(x), "y": {key: list(line) for key, line in y.items()}})

    def heat_map(self, name, rows, columns, cells):
        return self.statistic(name, "heat-map", {"rows": list(rows), "columns": list(columns),
                                                 "cells": [list(row) for row in cells]})

    def distribution(self, name, values):
        values = [float(value) for value in values]
        return _library.weir_mlops_distribution(self._handle, _bytes(name), (ctypes.c_double * len(values))(*values),
                                                len(values)) == 0

    def alert(self, about, title, is_healthy=False, message=None):
        """about: data, health or system."""
        return _library.weir_mlops_alert(self._handle, _bytes(about), _bytes(title), bool(is_healthy), _bytes(message)) == 0

    def feedback(self, decision, truth):
        return _library.weir_mlops_feedback(self._handle, _bytes(decision), _bytes(truth)) == 0

    # ---- what is asked

    def publish_model(self, name, file, metrics=None, baseline=None):
        """Returns the version's number; None: see error."""
        version = ctypes.c_int64()
        status = _library.weir_mlops_publish_model(
            self._handle, _bytes(name), _bytes(file), None if metrics is None else json.dumps(metrics).encode(),
            None if baseline is None else json.dumps(baseline).encode(), ctypes.byref(version))
        return version.value if status == 0 else None

    def last_approved_model(self, file=None, link=None):
        """Fetches it into `file`, if one is named. Returns the version's number; None: see error."""
        version = ctypes.c_int64()
        status = _library.weir_mlops_last_approved_model(self._handle, _bytes(link), _bytes(file), ctypes.byref(version))
        return version.value if status == 0 else None

    def get(self, path):
        """A GET of the REST API. Returns what the JSON says; None: see error."""
        text = _library.weir_mlops_get(self._handle, _bytes(path))
        if not text:
            return None
        try:
            return json.loads(ctypes.string_at(text))
        finally:
            _free(text)

    def statistics(self, ion, name=None):
        """What was told of an ION, newest first: the last 1000."""
        answer = self.get(f"/api/v1/ions/{ion}/statistics?limit=1000" + (f"&name={name}" if name else ""))
        return None if answer is None else answer["items"]

    def send_file(self, file):
        """Tell a server what a file holds. Returns how many lines were told."""
        n = ctypes.c_size_t()
        _library.weir_mlops_send_file(self._handle, _bytes(file), ctypes.byref(n))
        return n.value


def open(**options):  # noqa: A001: as in weir_mlops.h
    """Options: server, token, ca_file, ion, pipeline, run, file; see weir_mlops.h."""
    return Mlops(**options)
