"""`_hms_bridge_manifest`: the hash of every text of a dump, and `_finished_dump`, which names it.

A dump that is copied from place to place may lose lists or whole directories, and what is left
still looks like a dump. A real Hive reads neither text: of the marker it asks only whether it is
there (ReplicationSemanticAnalyzer.shouldLoadProceed), and of other files in a dump's directory it
takes no notice (ReplUtils.getEventsDirectoryFilter, BootstrapEventsIterator). Layout:
docs/format/dump-manifest.md.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from hms_bridge.errors import ReplError
from hms_bridge.repl.format.texts import compact_json

_HEAD = "# hms-bridge dump manifest 1"
_LINE = re.compile(r"([0-9a-f]{64})  ([^\x00\r\n]+)")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_MARKED_AT = "timeMs "


def text_digest(text: str) -> str:
    """SHA-256 of a text's bytes, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, kw_only=True, slots=True)
class DumpManifest:
    """Every text of a dump: its path below ``hive/``, and its SHA-256 in hex.

    ``reference_count``: how many data files all lists together name.
    """

    digests: Mapping[str, str]
    reference_count: int

    def format(self) -> str:
        """The file's text, which `sha256sum -c` reads too."""
        lines = [f"{digest}  {path}\n" for path, digest in sorted(self.digests.items())]
        counts = f"# {len(lines)} texts, {self.reference_count} references\n"
        return "".join([f"{_HEAD}\n", counts, *lines])

    @classmethod
    def parse(cls, text: str, path: str) -> DumpManifest:
        """Read the file's text. Raises ReplError, naming ``path``, if it is malformed or cut."""
        head, _, rest = text.partition("\n")
        counts, _, body = rest.partition("\n")
        stated = re.fullmatch(r"# (\d+) texts, (\d+) references", counts)
        if head != _HEAD or stated is None:
            raise ReplError(f"{path}: no manifest of a dump; it is damaged: copy the dump again")
        digests: dict[str, str] = {}
        # No other character ends a line: paths may have U+2028 and its like.
        for line in body.removesuffix("\n").split("\n") if body else ():
            matched = _LINE.fullmatch(line)
            if matched is None:
                raise ReplError(f"{path}: {line!r} is no line of it: copy the dump again")
            digests[matched.group(2)] = matched.group(1)
        if len(digests) != int(stated.group(1)):
            raise ReplError(
                f"{path}: {len(digests)} texts where {stated.group(1)} are stated; it was cut: "
                "copy the dump again"
            )
        return cls(digests=digests, reference_count=int(stated.group(2)))


@dataclass(frozen=True, kw_only=True, slots=True)
class FinishMark:
    """What `_finished_dump` says. Hive's is empty, and so is that of an earlier version of ours:
    then both are None. ``time_ms`` orders dumps, whatever a copy makes of modification times."""

    manifest_digest: str | None = None
    time_ms: int | None = None

    def format(self) -> str:
        """A line of JSON with the digest of the manifest and the time in ms."""
        fields = {"manifest": self.manifest_digest, "timeMs": self.time_ms}
        return compact_json(fields) + "\n"

    @classmethod
    def parse(cls, text: str, path: str) -> FinishMark:
        """Read the file's text. Raises ReplError, naming ``path``, if it is malformed."""
        if not text.strip():
            return cls()
        try:
            fields = json.loads(text)
            digest, time_ms = fields["manifest"], fields["timeMs"]
        except (ValueError, KeyError, TypeError, RecursionError):
            digest, time_ms = "", None
        is_digest = digest is None or (isinstance(digest, str) and _DIGEST.fullmatch(digest))
        if not is_digest or not isinstance(time_ms, int) or isinstance(time_ms, bool):
            raise ReplError(f"{path}: no mark of a finished dump; it is damaged: copy it again")
        return cls(manifest_digest=digest, time_ms=time_ms)


@dataclass(frozen=True, kw_only=True, slots=True)
class FailureMark:
    """What `_non_recoverable` says to people in its first line. Hive's is a stack trace, without
    a time; ours has one, for the same end as :class:`FinishMark`."""

    text: str = ""
    time_ms: int | None = None

    def format(self) -> str:
        """The reason in one line, and the time in ms in the next."""
        return f"{' '.join(self.text.split())}\n{_MARKED_AT}{self.time_ms}\n"

    @classmethod
    def parse(cls, text: str) -> FailureMark:
        """Read the file's text: any is one."""
        first, _, rest = text.strip().partition("\n")
        at = rest.removeprefix(_MARKED_AT) if rest.startswith(_MARKED_AT) else ""
        is_time = at.isascii() and at.isdecimal()
        return cls(text=first, time_ms=int(at) if is_time else None)
