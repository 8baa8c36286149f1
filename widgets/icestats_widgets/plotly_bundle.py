"""plotly's 5 MB of JavaScript, sent compressed once per kernel instead of once per figure."""

from __future__ import annotations

import gzip
import threading
from functools import cache
from pathlib import Path

import anywidget
import plotly
from traitlets import Bytes, Unicode

_PACKING = 2


class PlotlyBundle(anywidget.AnyWidget):
    """plotly's JavaScript: never displayed, used by every figure of the page."""

    _esm = Path(__file__).with_name("plotly_bundle.js")

    gzipped = Bytes().tag(sync=True)
    """The module, gzipped.

    Type: bytes. Default: empty.
    """

    version = Unicode(plotly.__version__).tag(sync=True)
    """plotly's version: a page unpacks each version once.

    Type: str. Default: the installed one's.
    """


_lock = threading.Lock()
_bundle: PlotlyBundle | None = None


@cache
def pack_bundle() -> bytes:
    """Return plotly's JavaScript, gzipped once per kernel."""
    code = Path(plotly.__file__).with_name("package_data") / "plotly.min.js"
    return gzip.compress(code.read_bytes(), _PACKING, mtime=0)


def find_bundle() -> PlotlyBundle:
    """Return the kernel's bundle, sent to the front end on the first call."""
    global _bundle
    with _lock:
        if _bundle is None or _bundle.comm is None:
            _bundle = PlotlyBundle(gzipped=pack_bundle())
        return _bundle
