"""The manifest in SQL does what every manifest does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event
from sqlalchemy.dialects import mysql, postgresql

from changemanager.manifest import ArchiveManifest, PinKind
from hms_bridge.archive.lock import HOLD_ARCHIVE
from hms_bridge.clock import SystemClock
from hms_bridge.service.open import open_local_metastore
from tests.changemanager.manifest_behaviour import (
    CMROOT,
    NAME,
    T0,
    ManifestBehaviour,
    archived,
    intent,
    pin,
    reserved,
)
from tests.support.databases import SERVER_URL, fresh_url
from tests.support.intents import add_intent
from tests.support.simulated_clock import SimulatedClock
from tests.support.told_points import listen


class TestSqlManifest(ManifestBehaviour):
    """On SQLite."""

    @pytest.fixture
    def manifest(self, tmp_path: Path) -> Iterator[ArchiveManifest]:
        service = open_local_metastore(
            fresh_url(tmp_path), warehouse=str(tmp_path / "warehouse"), clock=SimulatedClock(T0)
        )
        listen(service)
        yield service.manifest
        service.close()

    def test_a_time_is_judged_by_the_clock_of_a_database_that_has_one(self, tmp_path: Path) -> None:
        service = open_local_metastore(fresh_url(tmp_path), warehouse=str(tmp_path / "warehouse"))
        now_ms = SystemClock().now_ms()
        assert not service.manifest.note_time(now_ms).doubt
        judged = service.manifest.note_time(now_ms + 3_600_000)
        is_refused = SERVER_URL is not None
        assert bool(judged.refusal) is is_refused
        seen_ms = now_ms if is_refused else now_ms + 3_600_000
        assert service.manifest.known_times().seen_ms == seen_ms
        assert (service.manifest.trust_time(now_ms + 40 * 86_400_000) == ()) is is_refused
        service.close()

    def test_a_lease_goes_by_the_clock_of_a_database_that_has_one(self, tmp_path: Path) -> None:
        """The host of who comes second is 20 minutes ahead: no lease of a living one is his."""
        service = open_local_metastore(fresh_url(tmp_path), warehouse=str(tmp_path / "warehouse"))
        manifest, now_ms = service.manifest, SystemClock().now_ms()
        ahead_ms = now_ms + 1_200_000
        is_living = SERVER_URL is not None
        manifest.reserve("/cm", reserved(NAME), now_ms)
        manifest.record_archived("/cm", archived(NAME), now_ms)
        file = {"seen_archived_at_ms": now_ms, "overridden_holders": ()}
        assert manifest.claim_purge("/cm", NAME, owner="one", now_ms=now_ms, **file)
        assert (NAME in manifest.live_purges("/cm", ahead_ms)) is is_living
        assert manifest.release_purge("/cm", NAME, owner=None, now_ms=ahead_ms) is not is_living
        assert manifest.take_leases(["t"], "one", now_ms) == {"t"}
        assert manifest.take_leases(["t"], "two", ahead_ms) == (set() if is_living else {"t"})
        assert manifest.renew_lease("t", "one", now_ms) is is_living
        service.close()

    @pytest.mark.parametrize(
        ("archived_as", "purged_as"),
        [
            ("hdfs://nn:8020/cm", "hdfs://nn/cm"),
            ("hdfs://nn/cm", "hdfs://nn:8020/cm"),
            ("s3a://bucket/cm", "s3://bucket/cm"),
        ],
    )
    def test_a_cmroot_is_one_however_it_is_spelled(
        self, manifest: ArchiveManifest, archived_as: str, purged_as: str
    ) -> None:
        """A purge that does not find holds of a database would delete what they hold."""
        manifest.reserve(archived_as, reserved(NAME), T0)
        manifest.record_archived(archived_as, archived(NAME), T0)
        add_intent(manifest, intent(cmroot=archived_as))
        manifest.put_pin(pin("hold:1", kind=PinKind.HOLD, database="db"))
        assert manifest.entries(purged_as).keys() == {NAME}
        assert manifest.holders(purged_as, [NAME], T0)[NAME] == ("hold:1", "intent:i1")
        assert not manifest.claim_purge(
            purged_as,
            NAME,
            seen_archived_at_ms=T0,
            overridden_holders=(),
            owner="one",
            now_ms=T0 + 100,
        )
        assert manifest.entries("hdfs://other:8020/cm") == {}

    @pytest.mark.parametrize("change", ["pin", "removal", "purge"])
    def test_pins_and_purges_come_one_after_the_other(
        self, manifest: ArchiveManifest, change: str
    ) -> None:
        """In servers by the lock of a row, before anything changes: else a purge sees no pin that
        is not committed yet, and the pin does not see the purge. SQLite has one writer anyway."""
        manifest.reserve("/cm", reserved(NAME), T0)
        manifest.record_archived("/cm", archived(NAME), T0)
        statements: list[str] = []

        def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
            statements.append(statement)

        event.listen(Engine, "before_cursor_execute", note)
        try:
            if change == "pin":
                manifest.put_pin(pin("hold:1", kind=PinKind.HOLD, database="db"))
            elif change == "removal":
                add_intent(manifest, intent(cmroot="/cm"))
            else:
                assert manifest.claim_purge(
                    "/cm",
                    NAME,
                    seen_archived_at_ms=T0,
                    overridden_holders=(),
                    owner="one",
                    now_ms=T0 + 100,
                )
        finally:
            event.remove(Engine, "before_cursor_execute", note)
        is_read = re.compile("BEGIN|SELECT").match
        first = list(takewhile(is_read, statements))
        assert len([text for text in first if "HMSB_ARCHIVE_LOCK" in text]) == 1, statements
        for dialect in (postgresql.dialect(), mysql.dialect()):
            assert str(HOLD_ARCHIVE.statement.compile(dialect=dialect)).endswith("FOR UPDATE")


@pytest.mark.skipif(SERVER_URL is not None, reason="counts SQLite's steps")
def test_what_is_archived_costs_the_same_however_often_its_content_was(fast_folder: Path) -> None:
    """Of `_orc_acid_version` each directory has one, with the same content, so with one name; and
    beside it a file of its own."""
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    def watch(connection: Any, _record: object) -> None:
        connection.set_progress_handler(count, 100)

    def cost(first: int, number: int) -> int:
        before = steps
        for place in range(first, first + number):
            names = [NAME, f"own_{place}"]
            manifest.reserve(CMROOT, reserved(*names), T0)
            files = archived(*names, directory=f"delta_{place}_{place}")
            manifest.record_archived(CMROOT, files, T0)
        return steps - before

    event.listen(Engine, "connect", watch)
    try:
        service = open_local_metastore(
            fresh_url(fast_folder), warehouse=str(fast_folder / "warehouse")
        )
        manifest = service.manifest
        few = cost(0, 50)
        places = range(50, 3_000)
        more = [archived(NAME, directory=f"delta_{place}_{place}")[0] for place in places]
        manifest.record_archived(CMROOT, more, T0)
        assert len(manifest.entries(CMROOT)[NAME].origins) == 3_000
        assert cost(3_000, 50) <= 1.5 * few
        service.close()
    finally:
        event.remove(Engine, "connect", watch)
