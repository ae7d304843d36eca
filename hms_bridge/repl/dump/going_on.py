"""`_hms_bridge_going_on`: what the next dump has to know beside the event at which this one ends.

A dump with a limit ends before what it looked at, and one that is discarded leaves a position in
its place that neither saw a bootstrap nor the files of tables.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from changemanager.location import Resolver
from hms_bridge.model.ids import EventId
from hms_bridge.repl.dump.plain_tables import PlainPlace, read_plain, write_plain
from hms_bridge.repl.dump.tables_anew import read_names
from hms_bridge.repl.format.hashed_texts import NotedTexts
from hms_bridge.repl.format.layout import DumpPaths
from hms_bridge.repl.format.side_texts import parsing
from hms_bridge.repl.format.texts import read_text_if_there

_TEXT_BYTES_MAX = 1 << 16
_NOT_ON_THE_REPLICA = PlainPlace(files="-", names="-")


@dataclass(frozen=True, kw_only=True, slots=True)
class GoingOn:
    """``together_until``: a dump from where this one began has to come so far, whatever its limit.
    ``files_seen_at``: the newest event when it noted what plain tables hold; later events explain
    what is other."""

    together_until: EventId
    files_seen_at: EventId

    def format(self) -> str:
        """A line of JSON: an event id, and when files were looked at."""
        fields = {"togetherUntil": self.together_until, "filesSeenAt": self.files_seen_at}
        return json.dumps(fields) + "\n"


def read_going_on(resolve: Resolver, paths: DumpPaths, ended_at: EventId) -> GoingOn:
    """That of a dump; of one without, what its end says. Raises ReplError if it is damaged."""
    text = read_text_if_there(resolve(paths.going_on), _TEXT_BYTES_MAX)
    if text is None:
        return GoingOn(together_until=EventId(0), files_seen_at=ended_at)
    with parsing("note of what the next dump goes on from", paths.going_on, "dump --bootstrap"):
        fields = json.loads(text)
        return GoingOn(
            together_until=EventId(int(fields["togetherUntil"])),
            files_seen_at=EventId(int(fields["filesSeenAt"])),
        )


def write_position_notes(texts: NotedTexts, old: DumpPaths, ended_at: EventId) -> None:
    """What a position says that takes the place of a discarded dump, which ended at an event. Of
    plain tables that it brought whole the replica has nothing: they differ until they come."""
    resolve = texts.resolve
    texts.write({texts.paths.going_on: read_going_on(resolve, old, ended_at).format()})
    anew = read_names(resolve, old)
    places = {
        name: _NOT_ON_THE_REPLICA if name.partition("/")[0] in anew else place
        for name, place in read_plain(resolve, old).items()
    }
    write_plain(texts, places)
