"""What a load is asked for, what it will do, and what it did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from hms_bridge.model.ids import EventId
from hms_bridge.repl.format.directories import DumpState
from hms_bridge.repl.format.untrusted import DumpRules, given_name
from hms_bridge.repl.format.verify import Reading, VerifyReport
from hms_bridge.repl.lease import LeaseRules
from hms_bridge.repl.load.distributed import CopyLimits
from hms_bridge.repl.load.file_copy import CopyReport
from hms_bridge.repl.load.incremental import IncrementalPlan
from hms_bridge.repl.load.replica import ReplicaNames
from hms_bridge.repl.remedies import name_roots

_FILE_COSTS_BYTES = 16 << 10
"""To open, name and close a small file takes about as long as to copy so much."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadRequest:
    """Load the newest dump of ``source_database`` below ``root`` into ``target_database``.

    ``target_database`` None: the same name. ``external_base``: where data of external tables goes,
    ``functions_root``: where files of functions do. ``preflight``: which files are read before
    anything is changed; all are checked as they are copied. ``bandwidth``: bytes a second that are
    copied at most; None: as many as can be. ``copy_limits``: above which a job copies, if there is
    one. ``retain_ms``: the source's hive.repl.cm.retain, for forecasts. ``lease``: how one load of
    the database is kept alone. ``is_drop_allowed``: the replica goes if its source has dropped the
    database.

    ``roots``: the only directories below which files are read, as an administrator named them;
    none: those that the replica notes. ``is_origin_trusted``: those that the dump names, too, from
    now on. ``is_from_hive``: the dump may lack the manifest that dumps of ours have.
    ``naming_command`` gives the command that names roots, for what refuses; None: that of
    ``repl load``.
    """

    root: str
    source_database: str
    target_database: str | None = None
    external_base: str | None = None
    functions_root: str | None = None
    user: str = "hive"
    host: str = "localhost"
    rules: DumpRules = field(default_factory=DumpRules)
    lease: LeaseRules = field(default_factory=LeaseRules)
    preflight: Reading = Reading.WHERE_NAMES_ARE_USED_AGAIN
    bandwidth: int | None = None
    copy_limits: CopyLimits = field(default_factory=CopyLimits)
    retain_ms: int | None = None
    is_drop_allowed: bool = False
    roots: tuple[str, ...] = ()
    is_origin_trusted: bool = False
    is_from_hive: bool = False
    naming_command: Callable[[Sequence[str]], str] | None = None

    def naming(self, roots: Sequence[str]) -> str:
        """The command that names roots for this load."""
        if self.naming_command is not None:
            return self.naming_command(roots)
        names = self.names
        return name_roots(names.source_database, names.target_database, self.root, roots)

    @property
    def names(self) -> ReplicaNames:
        """Who replicates what into what, in lower case."""
        source = given_name(self.source_database, "database")
        return ReplicaNames(
            source_database=source,
            target_database=given_name(self.target_database or source, "database"),
            external_base=self.external_base,
            functions_root=self.functions_root,
            user=self.user,
            host=self.host,
        )


class LoadKind(Enum):
    """What a load will do."""

    BOOTSTRAP = "bootstrap"
    INCREMENTAL = "incremental"
    DROP = "drop"
    NOTHING = "nothing"


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadPlan:
    """What a load will do, found out without changing anything.

    ``stands_at`` is the target's ``repl.last.id``, None before the bootstrap. ``tables``: that come
    whole. ``events``: how many of each kind an incremental load applies; ``passed``: kinds
    without effect here; ``replay``: how they are applied. ``state`` of the dump: one that is loaded
    is loaded again into a replica that is behind it. ``roots``: below which its files are read.
    """

    kind: LoadKind
    request: LoadRequest
    reason: str
    directory: str
    state: DumpState = DumpState.FINISHED
    stands_at: EventId | None = None
    last_event_id: EventId | None = None
    tables: tuple[str, ...] = ()
    events: Mapping[str, int] = field(default_factory=dict)
    passed: Mapping[str, int] = field(default_factory=dict)
    files: VerifyReport | None = None
    replay: IncrementalPlan | None = None
    roots: tuple[str, ...] = ()

    @property
    def weights(self) -> Mapping[EventId, int]:
        """What each event brings, in bytes, where files count for more than they hold."""
        weights: Counter[EventId] = Counter()
        for file in () if self.files is None else self.files.files:
            if file.named.event_id is not None:
                weights[file.named.event_id] += (file.size_bytes or 0) + _FILE_COSTS_BYTES
        return weights

    @property
    def sizes(self) -> Mapping[str, int]:
        """Bytes of the files that are known, by their URI."""
        files = () if self.files is None else self.files.files
        return {
            file.named.file.uri: file.size_bytes for file in files if file.size_bytes is not None
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadReport:
    """What a load did. ``notes``: what differs from the source all the same, for people."""

    kind: LoadKind
    reason: str
    directory: str
    target_database: str
    last_event_id: EventId | None
    copied: CopyReport = field(default_factory=CopyReport)
    events: Mapping[str, int] = field(default_factory=dict)
    passed: Mapping[str, int] = field(default_factory=dict)
    tables: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
