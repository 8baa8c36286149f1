"""The explorer: everything that a table's metadata knows, in one widget."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anywidget
from traitlets import Dict, List, Unicode

from icestats.answers.text import one_line, printable
from icestats.answers.whole_file import write_whole
from icestats.errors import CallError
from icestats.table.table import Table
from icestats_widgets.page.filter_bar import FilterBar
from icestats_widgets.page.given_names import define_given
from icestats_widgets.page.grid import Row
from icestats_widgets.page.head import build_head, title_of
from icestats_widgets.page.part import Part
from icestats_widgets.page.static_page import build_static_page
from icestats_widgets.parts import build_parts
from icestats_widgets.reading.background import Background, explain_error
from icestats_widgets.reading.coordinator import Coordinator
from icestats_widgets.reading.question_coordinator import QuestionCoordinator
from icestats_widgets.reading.tree.tree_coordinator import TreeCoordinator
from icestats_widgets.state import TABS, ExplorerState

_LONGEST_HEAD_START_SECONDS = 1.5
"""After this time the rest is read even if no page reports that it shows the explorer."""
_SECONDS_TO_PICTURE = 3.0
"""How long after the last change the picture of a saved notebook is made anew."""
_IMPORTS = {
    "datetime.": "import datetime",
    "zoneinfo.": "import zoneinfo",
    "Decimal(": "from decimal import Decimal",
    "inf,": "from math import inf",
    "nan,": "from math import nan",
}
"""What code needs that has a partition's values in it."""
_STATIC = Path(__file__).with_name("static")
_logger = logging.getLogger(__name__)


class Explorer(anywidget.AnyWidget):
    """A table's manifests, partitions, columns, plans, history and statistics, and what computes missing ones.

    The first view needs only the manifest list; the rest is read in the background. Nothing is written until you press
    *Commit*.

    Parameters
    ----------
    table : icestats.Table
        What to show.
    column : str, optional
        The column to start with.

    Examples
    --------
    >>> import icestats
    >>> explorer = icestats.load("demo.events").explore()
    >>> explorer.state.column = "event_type"
    """

    # As text: of a path anywidget makes what keeps each explorer, closed or not, as long as the process lives.
    _esm = (_STATIC / "explorer.js").read_text(encoding="utf-8")
    _css = (_STATIC / "explorer.css").read_text(encoding="utf-8")

    head = Dict().tag(sync=True)
    """The line on top: the table's name and totals. Type: dict. Default: empty."""
    query = Dict().tag(sync=True)
    """The bar with the row filter and the selection. Type: dict. Default: empty."""
    tabs = List(Dict()).tag(sync=True)
    """The tabs. Type: list of dict. Default: empty."""
    picture_id = Unicode().tag(sync=True)
    """By which the page finds the picture for saved notebooks, and hides it. Type: str. Default: empty."""
    tab = Unicode(TABS[0]).tag(sync=True)
    """The name of the open tab. Type: str. Default: the first one."""
    index = Dict().tag(sync=True)
    """The parts in their order, by name: tab and title. Type: dict. Default: empty."""
    arrangement = Dict().tag(sync=True)
    """Which parts are collapsed, and which take the whole width. Type: dict. Default: empty."""

    heard = Dict().tag(sync=True)
    """The newest act of the page that has been done: the view and its number. Type: dict. Default: empty."""

    def __init__(self, table: Table, *, column: str | None = None) -> None:
        if column is not None:
            table.schema.find(column)
        self.state = ExplorerState(table=_find_known(table), column=column)
        """What is shown and selected. Set its traits to change the selection."""
        self._background = Background()
        self._saved: Any = None
        self._saved_text, self._asker = "", ""
        self._saving: threading.Timer | None = None
        self._drawing, self._dirty, self._held = threading.RLock(), set[str](), threading.local()
        # A plan is asked before all else that follows the filter: it is what a person waits for.
        questions = QuestionCoordinator(self.state, self._background)
        self._coordinator = Coordinator(self.state, self._background)
        self._coordinator.read_overview()
        self._tree = TreeCoordinator(self.state, self._background)
        self.bar = FilterBar(self.state)
        """The filter and the selection."""
        self.parts: dict[str, Part] = {part.name: part for part in build_parts(self.state, self._background, questions)}
        """The parts by name, to get what they show: `explorer.parts["columns"].to_arrow()`."""
        super().__init__(picture_id=uuid.uuid4().hex)
        self.add_traits(**{f"part_{name}": Dict().tag(sync=True) for name in self.parts})
        self.tabs = [{"name": tab, "title": tab.capitalize()} for tab in TABS]
        self.index = {
            name: {"tab": part.tab, "title": part.title, "is_beside": part.is_beside}
            for name, part in self.parts.items()
        }
        self.bar.send = self._tell
        for part in self.parts.values():
            part.send = self._tell
            part.redraw = partial(self._draw_again, {part.name})
        self._draw_again({"head", "query", *self.parts})
        self.state.observe(self._follow)
        self.on_msg(lambda _, message, __: self._receive(message))
        self._tree.read()
        self._starting = threading.Lock()
        self._is_reading = False
        self._start_soon()
        _open.add(self)

    def code(self) -> str:
        """Return the Python lines that reproduce the view, part by part."""
        seen: dict[str, str] = {}
        for part in self.parts.values():
            if line := part.code():
                seen.setdefault(line, part.name)
        lines = ["import icestats", "", *define_given(f"table = {self.state.table.code()}").split("\n")]
        if any("read_part(" in line for line in seen):
            used = [text for name, text in _IMPORTS.items() if any(name in line for line in seen)]
            lines = [*used, "", "from icestats_widgets import FieldRange, Selection, read_part", *lines]
        return "\n".join([*lines, *(f"{name} = {line}" for line, name in seen.items())])

    def wait(self, timeout_s: float = 60.0) -> bool:
        """Wait until everything is read; return whether that happened in time."""
        if isinstance(timeout_s, bool) or not isinstance(timeout_s, int | float):
            raise CallError(f"timeout_s is {timeout_s!r:.80}: expected seconds, float('inf') for as long as it takes")
        self._read()
        is_in_time = self._background.wait(timeout_s)
        self._save()
        return is_in_time

    def _start_soon(self) -> None:
        # In a notebook the first picture goes to the browser before the processors are taken by reading.
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._read()
        else:
            # The loop may come to it long after the explorer was closed, or never.
            loop.call_later(_LONGEST_HEAD_START_SECONDS, _call, weakref.WeakMethod(self._read))

    def _read(self) -> None:
        with self._starting:
            if self._is_reading:
                return
            self._is_reading = True
        self._coordinator.read_rollups()

    def _receive(self, message: Any) -> None:
        message = _mend_text(message)
        if not isinstance(message, dict) or message.get("kind") != "act":
            return
        self._asker = str(message.get("view", ""))
        name, _, verb = str(message.get("action")).partition(".")
        value = message.get("value")
        try:
            with self._hold():
                if name == "page":
                    self._act(verb, value if isinstance(value, dict) else {})
                elif name == "query":
                    self.bar.act(verb, value)
                    self._draw_again({"query"})
                elif name in self.parts:
                    self.parts[name].act(verb, value)
        except Exception as error:
            # Kernels drop what a handler raises, or print it where nobody looks.
            _logger.debug("%s failed", message.get("action"), exc_info=True)
            self._tell({"kind": "problem", "text": printable(explain_error(error))})
        # Not while another thread draws: traitlets loses what is set while a second thread holds its notifications.
        with self._drawing:
            self.heard = {"view": self._asker, "number": message.get("number", 0)}

    def _tell(self, message: dict[str, Any], view: str | None = None) -> None:
        """Send a message to the page that asked, not to others that show the same explorer."""
        self.send({**message, "view": self._asker if view is None else view})

    def _act(self, verb: str, value: dict[str, Any]) -> None:
        state = self.state
        if verb == "shown":
            self._read()
        elif verb == "tab" and value.get("name") in TABS:
            state.tab = value["name"]
            if value.get("part") in self.parts:
                self._show_part(str(value["part"]), str(value.get("column", "")))
        elif verb == "width" and isinstance(value.get("figures"), dict):
            self._fit(value["figures"])
        elif verb in ("collapse", "widen") and value.get("part") in self.parts:
            self._arrange(verb, value["part"], bool(value.get("collapsed" if verb == "collapse" else "wide")))
        elif verb == "reload":
            self._coordinator.reload()
        elif verb == "code":
            self._tell({"kind": "code", "text": self.code()})
        elif verb == "report":
            self._background.run("report", self._send_report, partial(self._tell, view=self._asker), lambda _: None)

    def _show_part(self, part: str, column: str) -> None:
        if any(field.name == column for field in self.state.table.schema.top_level):
            self.state.column = column
        self._arrange("collapse", part, False)
        self._tell({"kind": "part", "part": part})

    def _arrange(self, verb: str, part: str, is_on: bool) -> None:
        name = "collapsed" if verb == "collapse" else "wide"
        parts = getattr(self.state, name)
        setattr(self.state, name, parts | {part} if is_on else parts - {part})

    def _fit(self, figures: dict[str, Any]) -> None:
        widths = {str(name): max(160, min(2400, int(pixels))) for name, pixels in figures.items()}
        changed = {name for name, width in widths.items() if self.state.widths.get(name) != width}
        self.state.widths = {**self.state.widths, **widths}
        self._draw_again({name.partition(".")[0] for name in changed} & set(self.parts))

    def to_html(self, path: str | Path | None = None) -> str | None:
        """Return what is shown as one HTML file that needs no kernel and no network, or write it to a path.

        What is still being read is waited for, as by `wait()`.

        Parameters
        ----------
        path : str or pathlib.Path, optional
            Where to write it; then nothing is returned.

        Examples
        --------
        >>> import icestats
        >>> explorer = icestats.load("demo.events").explore()
        >>> _ = explorer.wait()
        >>> "<script>" in explorer.to_html()
        True
        """
        if path is not None and not isinstance(path, str | os.PathLike):
            raise CallError(f"path is {path!r:.80}: expected where to write the report, or nothing")
        self.wait()
        text = self._build_report()
        if path is None:
            return text
        try:
            write_whole(Path(path), [text.encode()])
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or one_line(error)
            raise CallError(
                f"the report cannot be written to {path}: {reason}; name a file in a folder of yours"
            ) from error
        return None

    def _build_report(self) -> str:
        from icestats_widgets.page.report import build_report

        with self._drawing:
            documents = [part.document() for part in self.parts.values()]
            return build_report(build_head(self.state), self.bar.document(), documents, self._first_rows, self.code())

    def _send_report(self) -> dict[str, Any]:
        name = f"{title_of(self.state.table)}.html"
        return {"kind": "file", "name": name, "type": "text/html", "text": self._build_report()}

    def _ipython_display_(self, **options: Any) -> None:
        from IPython.display import display

        made: Any = self._repr_mimebundle_(**options)
        data, metadata = made if isinstance(made, tuple) else (made, {})
        text = f"icestats explorer of {printable(self.state.table.name)}"
        display({**data, "text/plain": text}, metadata=metadata, raw=True)  # type: ignore[no-untyped-call]
        # A second output: what a reader of the saved notebook sees. The page hides it while the explorer is alive.
        # What has to be read first comes later: the first picture in the browser does not wait for it.
        is_read = self._is_reading and self._background.wait(0)
        self._saved_text = self._picture() if is_read else self._picture(())
        self._saved = display({"text/html": self._saved_text, "text/plain": ""}, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        self._save_soon()

    def _picture(self, names: Iterable[str] | None = None) -> str:
        with self._drawing:
            documents = [self.parts[name].document() for name in (self.parts if names is None else names)]
            head, query = build_head(self.state), self.bar.document()
        return build_static_page(head, query, documents, self._first_rows, self.picture_id)

    def _save_soon(self) -> None:
        # Not at once: a person who clicks on does not wait for it.
        if self._saved is None:
            return
        if self._saving is not None:
            self._saving.cancel()
        self._saving = threading.Timer(_SECONDS_TO_PICTURE, self._save)
        self._saving.daemon = True
        self._saving.start()

    def _save(self) -> None:
        if self._saved is not None and (text := self._picture()) != self._saved_text:
            self._saved_text = text
            self._saved.update({"text/html": text, "text/plain": ""}, raw=True)

    def _first_rows(self, part: str, grid_id: str, count: int) -> list[Row]:
        return self.parts[part].grids[grid_id].first_rows(count)

    def _follow(self, change: Any) -> None:
        name = change.name
        if name in ("notes", "loading"):
            changed = _changed(change.old, change.new)
            found = {part.name for part in self.parts.values() if changed & set(part.hears or (part.name,))}
        else:
            found = {part.name for part in self.parts.values() if name in part.follows}
        self._draw_again(found | {"head", "query"})
        self._save_soon()

    @contextmanager
    def _hold(self) -> Iterator[None]:
        self._held.depth = getattr(self._held, "depth", 0) + 1
        try:
            yield
        finally:
            self._held.depth -= 1
            self._draw_again(set())

    def _draw_again(self, names: set[str]) -> None:
        # What one act changes is drawn once, at its end; parts on other tabs are drawn when these are opened.
        self._dirty |= names
        if getattr(self._held, "depth", 0):
            return
        state = self.state
        with self._drawing:
            open_parts = {part.name for part in self.parts.values() if part.tab == state.tab}
            # The filter is sent before figures are drawn: there a person sees first what a click has done.
            for names in ({"head", "query"}, open_parts):
                with self.hold_trait_notifications():
                    self.tab = state.tab
                    self.arrangement = {"collapsed": sorted(state.collapsed), "wide": sorted(state.wide)}
                    for name in sorted(self._dirty & names):
                        self._dirty.discard(name)
                        try:
                            self._draw(name)
                        except BaseException:
                            self._dirty.add(name)
                            raise

    def _draw(self, name: str) -> None:
        if name == "head":
            self.head = build_head(self.state)
        elif name == "query":
            self.query = self.bar.document()
        else:
            self.set_trait(f"part_{name}", self.parts[name].document())


def _call(method: weakref.WeakMethod[Callable[[], None]]) -> None:
    if found := method():
        found()


def _mend_text(value: Any) -> Any:
    """Return a message with a mark in place of half characters, which nothing can send, write or ask of a table."""
    if isinstance(value, str):
        return value if value.isascii() else "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in value)
    if isinstance(value, list):
        return [_mend_text(one) for one in value]
    return {_mend_text(k): _mend_text(v) for k, v in value.items()} if isinstance(value, dict) else value


_open: weakref.WeakSet[Explorer] = weakref.WeakSet()


def _find_known(table: Table) -> Table:
    """Return what another explorer shows of the same metadata, which has been read already; else the table."""
    for other in list(_open):
        known: Table = other.state.table
        is_same = known._source == table._source and known._source.catalog is table._source.catalog
        if is_same and known._pin == table._pin and not known._reader.findings:
            return known
    return table


def _changed(old: Any, new: Any) -> set[str]:
    if isinstance(new, dict):
        return {part for part in {*old, *new} if old.get(part) != new.get(part)}
    return set(old) ^ set(new)
