"""Commits and a removal that meet at a REST catalog, request by request, leave what some order of them gives."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import pytest
from greenlet import getcurrent, greenlet
from pyiceberg.catalog.rest import RestCatalog
from requests.adapters import HTTPAdapter

from icestats.errors import CommitError, StatisticsMissingError
from tests.committed_statistics import KLL, THETA, commit, entries, kll, remove, stored, theta
from tests.rest_catalog import serve

SEEDS = 40
TOO_SHORT = "the metadata log has dropped versions"
KEYS = [(THETA, (1,)), (THETA, (2,)), (KLL, (1,)), (KLL, (2,)), (KLL, (3,))]


@dataclass
class Deed:
    """A commit of blobs, or a removal of all; when it began and ended, in requests; whether it was done."""

    blobs: dict[Any, bytes] | None
    began: int = 0
    ended: int = 0
    is_done: bool = False
    said: str = ""


@dataclass
class Race:
    """Actors that send one request each in an order that is drawn."""

    draws: random.Random
    catalog: RestCatalog
    sent: int = 0
    is_running: bool = False
    deeds: list[Deed] = field(default_factory=list)

    def __post_init__(self):
        self._scheduler = getcurrent()

    def pause(self):
        if self.is_running:
            self._scheduler.switch()
        self.sent += 1

    def act(self, deeds):
        for deed in deeds:
            self.deeds.append(deed)
            deed.began = self.sent = self.sent + 1
            table = self.catalog.load_table("db.t")
            try:
                if deed.blobs is None:
                    remove(table)
                else:
                    new = [(theta if t == THETA else kll)(table, i, data) for (t, (i,)), data in deed.blobs.items()]
                    deed.said = " ".join(commit(table, *new).warnings)
                deed.is_done = True
            except (CommitError, StatisticsMissingError) as error:
                if deed.blobs is not None:
                    raise
                deed.said = str(error)
            deed.ended = self.sent = self.sent + 1

    def run(self, plans):
        actors = [greenlet(self.act, self._scheduler) for _ in plans]
        self.is_running = True
        for actor, deeds in zip(actors, plans, strict=True):
            actor.switch(deeds)
        while alive := [actor for actor in actors if not actor.dead]:
            self.draws.choice(alive).switch()
        self.is_running = False

    def possible(self, key):
        """Return the values that a blob may have in the end: of each deed that none has followed, None for no blob."""
        done = [deed for deed in self.deeds if deed.is_done and (deed.blobs is None or key in deed.blobs)]
        last = [deed for deed in done if not any(other.began > deed.ended for other in done)]
        return {None if deed.blobs is None else deed.blobs[key] for deed in last} or {None}


def draw_plans(draws):
    """Two or three actors with one or two deeds each, one of them at most a removal."""
    count = iter(range(100))

    def draw_commit():
        return Deed({key: b"%d" % next(count) for key in draws.sample(KEYS, draws.randint(1, 2))})

    plans = [[draw_commit() for _ in range(draws.choice((1, 1, 2)))] for _ in range(draws.choice((2, 3)))]
    if draws.random() < 0.7:
        draws.choice(plans).append(Deed(None))
    return [draw_commit()] if draws.random() < 0.7 else [], plans


def run_race(table, seed, logged, monkeypatch):
    """Return the race, and what was left and is of no order, by key."""
    with table.transaction() as transaction:
        transaction.set_properties(
            {"commit.retry.min-wait-ms": "0", "write.metadata.previous-versions-max": str(logged)}
        )
    draws, send = random.Random(seed), HTTPAdapter.send
    with serve(table.catalog) as uri, RestCatalog("r", uri=uri) as catalog:
        race = Race(draws, catalog)

        def send_in_turn(*arguments, **options):
            race.pause()
            return send(*arguments, **options)

        monkeypatch.setattr(HTTPAdapter, "send", send_in_turn)
        before, plans = draw_plans(draws)
        race.act(before)
        race.run(plans)
    left = stored(table) if entries(table) else {}
    return race, {key: left.get(key) for key in KEYS if left.get(key) not in race.possible(key)}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_is_left_is_what_some_order_of_them_gives(table, seed, monkeypatch):
    race, wrong = run_race(table, seed, 100, monkeypatch)
    assert wrong == {}
    assert not any(TOO_SHORT in deed.said for deed in race.deeds)


@pytest.mark.parametrize("seed", [27, 44, 99, 124, 223])
def test_a_file_planned_before_puts_no_older_blob_over_a_newer_one(table, seed, monkeypatch):
    assert run_race(table, seed, 1, monkeypatch)[1] == {}


@pytest.mark.parametrize("seed", [129, 189, 211])
def test_what_a_log_of_one_version_cannot_tell_is_said(table, seed, monkeypatch):
    race, _ = run_race(table, seed, 1, monkeypatch)
    assert any(TOO_SHORT in deed.said for deed in race.deeds)
