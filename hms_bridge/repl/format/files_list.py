"""`_files`: the data files of a table or partition, one encoded reference a line."""

from __future__ import annotations

from collections.abc import Iterable

from changemanager.errors import ChangeManagerError
from changemanager.uri import EncodedUri, encode_uri
from hms_bridge.errors import ReplError
from hms_bridge.repl.format.untrusted import DumpedFile, DumpRules, checked_file


def format_files(files: Iterable[EncodedUri]) -> str:
    """The text of a list: `uri#checksum#cmroot#sub-directory` lines. Raises ReplError."""
    try:
        return "".join(f"{encode_uri(file)}\n" for file in files)
    except ChangeManagerError as error:
        raise ReplError(f"a file cannot be named in a dump: {error}") from error


def parse_files(
    text: str, rules: DumpRules, where: str, *, is_transactional: bool
) -> tuple[DumpedFile, ...]:
    """Read a list; blank lines are dropped. Raises ReplError for a line that is not believed."""
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) > rules.files_max:
        raise ReplError(f"{where}: {len(lines)} files, more than the {rules.files_max} allowed")
    return tuple(
        checked_file(line, rules, where, is_transactional=is_transactional) for line in lines
    )
