"""Actors that take turns, a clock, and faults at every call of theirs: all of it chosen by one random.Random(seed)."""

from __future__ import annotations

import hashlib
import random
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from greenlet import getcurrent, greenlet
from sqlalchemy.exc import OperationalError

_Result = TypeVar("_Result")

LAG, FAIL, CUT, LOSE, DIE = "lag", "fail", "cut short", "lose the answer", "die"
FAULTS = (LAG, FAIL, CUT, LOSE, DIE)
_RATES = {
    LAG: (0.0, 0.1, 0.3),
    FAIL: (0.0, 0.004, 0.02),
    CUT: (0.0, 0.004, 0.02),
    LOSE: (0.0, 0.004, 0.02),
    DIE: (0.0, 0.002, 0.008),
}
"""How likely a call has a fault; each seed takes one of them for each kind, so that some seeds have few kinds."""
_HOLD_RATES = (0.2, 0.9)
"""How likely others get to work between an actor's last look at the table and the arrival of its commit."""
_HOLDS = (1, 4, 30)
"""How many turns of others that may be."""
START_MS = 1_767_225_600_000
DAY_MS = 86_400_000


class Death(BaseException):
    """The end of an actor's process: nothing may catch it, and after it the actor's calls do nothing."""


@dataclass
class Actor:
    """Somebody who works on the table, one operation at a time."""

    name: str
    under_way: greenlet | None = None
    operation: Any = None
    dead: bool = False
    memory: dict[str, Any] = field(default_factory=dict)
    """What its process holds: gone when it dies."""


class Turns:
    """Who is working, when, and what goes wrong.

    Parameters
    ----------
    seed : int
        Of all choices.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.rates = {fault: self.random.choice(rates) for fault, rates in _RATES.items()}
        self.hold_rate = self.random.choice(_HOLD_RATES)
        self.now_ms = START_MS
        self.current: Actor | None = None
        """None while the simulation itself looks at the table: its calls have no faults."""
        self.calm = False
        """Whether there are no faults any more."""
        self.step_count = 0
        self.faults: Counter[str] = Counter()
        self.trace: list[str] = []
        self._digest = hashlib.sha256()
        self._scheduler = getcurrent()

    @property
    def trace_hash(self) -> str:
        """Return a hash of everything that has happened."""
        return self._digest.hexdigest()

    def note(self, *words: object) -> None:
        """Add a line to the trace."""
        line = " ".join(str(word) for word in (self.now_ms - START_MS, *words))
        self.trace.append(line)
        self._digest.update(line.encode() + b"\n")

    def begin(self, actor: Actor, work: Callable[[], None]) -> None:
        """Let an actor start an operation; it goes on with `step`."""
        actor.dead = False
        actor.under_way = greenlet(work, self._scheduler)

    def step(self, actor: Actor) -> None:
        """Let an actor work until it pauses or has ended its operation."""
        assert actor.under_way is not None
        self.step_count += 1
        self.current = actor
        try:
            actor.under_way.switch()
        finally:
            self.current = None
        if actor.under_way.dead:
            actor.under_way = None

    def kill(self, actor: Actor) -> None:
        """End an actor's process where it stands."""
        if actor.under_way is not None:
            actor.dead = True
            self.step(actor)
            assert actor.under_way is None

    def pause(self) -> None:
        """Give the turn to others."""
        actor = self.current
        if actor is None or actor.dead:
            return
        self._scheduler.switch()
        if actor.dead:
            raise Death

    def hold(self) -> None:
        """Let others work, perhaps: on the table that an actor is about to commit to."""
        if self.current is not None and self.random.random() < self.hold_rate:
            for _ in range(self.random.choice(_HOLDS)):
                self.pause()

    def call(
        self,
        what: str,
        place: str,
        work: Callable[[], _Result],
        cut: Callable[[], _Result] | None = None,
        spoil: Callable[[], object] = lambda: None,
    ) -> _Result:
        """Do a call of storage or catalog, with what may go wrong.

        Parameters
        ----------
        what, place : str
            For the trace.
        work : callable
            The call.
        cut : callable, optional
            What it does where it is cut short.
        spoil : callable
            What is left where it fails, or the actor dies, before the work.
        """
        actor = self.current
        if actor is None:
            return work()
        if actor.dead:
            spoil()
            raise Death
        self.now_ms += self.random.randint(1, 40)
        fault, early = self._draw(cut is not None), self.random.random() < 0.5
        self.note(actor.name, what, place, fault or "")
        if fault is not None:
            self.faults[fault] += 1
        if fault == FAIL or (fault == DIE and early):
            spoil()
            raise self._error(what, actor, fault)
        if fault == LAG and early:
            self.pause()
        result = cut() if fault == CUT and cut is not None else work()
        if fault in (LOSE, DIE):
            raise self._error(what, actor, fault)
        if fault == LAG and not early:
            self.pause()
        return result

    def _draw(self, can_cut: bool) -> str | None:
        drawn = self.random.random()
        for fault in FAULTS if not self.calm else (LAG,):
            drawn -= self.rates[fault] if fault != CUT or can_cut else 0.0
            if drawn < 0:
                return fault
        return None

    def _error(self, what: str, actor: Actor, fault: str) -> BaseException:
        if fault == DIE:
            actor.dead = True
            return Death()
        kinds: list[Callable[[str], Exception]] = [OSError, PermissionError, TimeoutError, ConnectionResetError]
        if what in ("commit", "load"):
            kinds.append(lambda text: OperationalError(text, None, RuntimeError("database is locked")))
        return self.random.choice(kinds)(f"simulated: {what}: {fault}")

    def uuid4(self) -> uuid.UUID:
        """Take the place of `uuid.uuid4`."""
        return uuid.UUID(int=self.random.getrandbits(128), version=4)

    def sleep(self, duration_s: float) -> None:
        """Take the place of `time.sleep`: others go on meanwhile."""
        self.now_ms += int(duration_s * 1000)
        self.pause()
