"""Transactions of a source that its replica keeps open, and those that ended without an event.

A time-out that the source did not log (Hive with housekeeping of its own: HIVE-28975;
docs/hive/replication.md §23) would leave the replay open until the replica gives it up, after
eleven days. So each dump of ours says which of them have ended: those that no event of the log
ends, and that the source did not know as open when it was asked before the last event of the range
was chosen. A commit and its event are one database transaction, so one that had ended by then has
its event in the range, if it has one.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass

from changemanager.location import Resolver
from hms_bridge.model.ids import TxnId
from hms_bridge.model.txn import OpenTxns, TxnState
from hms_bridge.repl.format.layout import DumpPaths
from hms_bridge.repl.format.side_texts import parsing
from hms_bridge.repl.format.texts import read_text_if_there

_TEXT_BYTES_MAX = 64 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Replays:
    """``opened``: a replica may have them open after a dump; ``ended``: it may not any more."""

    opened: frozenset[TxnId] = frozenset()
    ended: frozenset[TxnId] = frozenset()

    @property
    def all(self) -> frozenset[TxnId]:
        """Whether the dump was loaded or not."""
        return self.opened | self.ended

    def format(self) -> str:
        """The text of a dump that names them."""
        return json.dumps({"open": sorted(self.opened), "ended": sorted(self.ended)}) + "\n"

    @classmethod
    def parse(cls, text: str | None, path: str) -> Replays:
        """Read the text, none if it is not there. Raises ReplError, naming ``path``."""
        with parsing("lists of transactions", path):
            fields = json.loads(text or '{"open": [], "ended": []}')
            return cls(
                opened=frozenset(TxnId(int(txn_id)) for txn_id in fields["open"]),
                ended=frozenset(TxnId(int(txn_id)) for txn_id in fields["ended"]),
            )

    @classmethod
    def read(cls, resolve: Resolver, paths: DumpPaths) -> Replays:
        """What an earlier dump says; of one of Hive's its list of open transactions."""
        text = read_text_if_there(resolve(paths.replays), _TEXT_BYTES_MAX)
        if text is not None:
            return cls.parse(text, paths.replays)
        listed = read_text_if_there(resolve(paths.open_txns), _TEXT_BYTES_MAX) or ""
        ids = (part.strip() for part in listed.split(","))
        return cls(opened=frozenset(TxnId(int(number)) for number in ids if number.isdecimal()))


def still_open(
    candidates: Collection[TxnId], before: OpenTxns, ended_later: Collection[TxnId] = ()
) -> Replays:
    """What became of transactions that no event ended. ``before``: what the source had open before
    its newest event was asked for; ``ended_later``: what events end that lie beyond the range."""
    known = {txn.id for txn in before.txns if txn.state is TxnState.OPEN} | {*ended_later}
    ended = frozenset(
        txn_id for txn_id in candidates if txn_id <= before.high_watermark and txn_id not in known
    )
    return Replays(opened=frozenset(candidates) - ended, ended=ended)
