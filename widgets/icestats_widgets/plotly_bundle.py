"""plotly's 5 MB of JavaScript, sent once a kernel and packed, instead of once a figure."""

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
    """plotly's JavaScript, shown by nothing, used by every figure of the page."""

    _esm = Path(__file__).with_name("plotly_bundle.js")

    gzipped = Bytes().tag(sync=True)
    """The module, gzipped.

    Type: bytes. Default: empty.
    """

    version = Unicode(plotly.__version__).tag(sync=True)
    """plotly's version: a page unpacks each once.

    Type: str. Default: the installed one's.
    """


_lock = threading.Lock()
_bundle: PlotlyBundle | None = None


@cache
def pack_bundle() -> bytes:
    """Return plotly's JavaScript, gzipped; it is packed once a kernel."""
    code = Path(plotly.__file__).with_name("package_data") / "plotly.min.js"
    return gzip.compress(code.read_bytes(), _PACKING, mtime=0)


def find_bundle() -> PlotlyBundle:
    """Return the kernel's bundle, which is sent to the front end when it is first asked for."""
    global _bundle
    with _lock:
        if _bundle is None or _bundle.comm is None:
            _bundle = PlotlyBundle(gzipped=pack_bundle())
        return _bundle
