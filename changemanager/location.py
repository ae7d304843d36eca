"""From a path or URI to a file system and a path in it.

Texts are taken as Hadoop takes them: nothing is percent-decoded, a path without scheme belongs to
the default file system, `file:/x` and `file:///x` are one file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from changemanager.checksum import (
    HDFS_LAYOUT,
    READ_BYTES,
    checksum_like,
    composite_checksum,
)
from changemanager.errors import LocationError
from changemanager.filesystem.opening import (
    BUCKET_SCHEMES,
    one_name_of,
    open_volume,
)
from changemanager.filesystem.volume import FileKind, FileStatus, Volume
from changemanager.hadoop import RPC_PORT

_URI = re.compile(
    r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?://(?P<authority>[^/]*))?)?(?P<path>.*)"
)
_SAME_FILE_SYSTEM = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfss": "abfs"}
_HDFS_PORT = f":{RPC_PORT}"
_KNOWN_MAX = 4096


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedUri:
    """The parts of a path or URI. `scheme` is empty for a bare path; the path starts with "/"."""

    scheme: str
    authority: str
    path: str

    @property
    def file_system(self) -> tuple[str, str]:
        """Scheme and authority; a bare path lies where `file:` does."""
        return self.scheme or "file", self.authority

    @property
    def server(self) -> tuple[str, str]:
        """What is connected to: one for all spellings that are alike without a look at
        configuration."""
        scheme = _SAME_FILE_SYSTEM.get(self.scheme, self.scheme or "file")
        if self.scheme in BUCKET_SCHEMES:
            return scheme, ""
        is_hdfs = scheme == "hdfs"
        return scheme, self.authority.removesuffix(_HDFS_PORT) if is_hdfs else self.authority

    @property
    def prefix(self) -> str:
        """Everything before the path, in the one form that this project writes."""
        if not self.scheme:
            return ""
        if self.scheme == "memory":
            return "memory:/"
        return f"{self.scheme}://{self.authority}" if self.authority else f"{self.scheme}:"

    @property
    def uri(self) -> str:
        """The whole text again, in its one form: `file:/x`, `hdfs://host:port/x`, `/x`."""
        return self.prefix + self.path

    def is_below(self, outer: ParsedUri) -> bool:
        """Whether it is another place of the same file system, or below it."""
        return self.file_system == outer.file_system and is_within(self.path, outer.path)


# Each place is taken apart over and over: by who plans, guards, asks and resolves.
@lru_cache(maxsize=_KNOWN_MAX)
def parse_uri(text: str) -> ParsedUri:
    """Take a path or URI apart; slashes that say nothing are dropped.

    Raises LocationError for what is not absolute, and for the levels `.` and `..`.
    """
    match = _URI.fullmatch(text) if "\n" not in text and "\0" not in text else None
    if match is None or not (
        match["path"].startswith("/") or (match["authority"] and not match["path"])
    ):
        raise LocationError(f"{text!r} is no absolute path and no URI with one")
    levels = levels_of(match["path"])
    if "." in levels or ".." in levels:
        raise LocationError(f"{text!r} has a level '.' or '..'; write the path in full")
    scheme = (match["scheme"] or "").lower()
    authority = match["authority"] or ""
    if scheme == "memory" and authority:
        levels, authority = (authority, *levels), ""
    if scheme == "file" and authority not in {"", "localhost"}:
        raise LocationError(f"{text!r} names the host {authority!r}; a file: URI has none")
    if scheme == "file":
        authority = ""
    return ParsedUri(scheme=scheme, authority=authority, path="/" + "/".join(levels))


def levels_of(path: str) -> tuple[str, ...]:
    """The names on the way; slashes that say nothing are dropped."""
    return tuple(level for level in path.split("/") if level)


def is_within(inner: str, outer: str) -> bool:
    """Whether a path is another one or below it; compared level by level."""
    outer_levels = levels_of(outer)
    return levels_of(inner)[: len(outer_levels)] == outer_levels


def path_below(inner: str, outer: str) -> str | None:
    """The path from a place down to another one, both spelled alike (as `Location.uri` is): empty
    for the place itself, None if the other is not below it."""
    outer = outer.rstrip("/")
    if inner.rstrip("/") == outer:
        return ""
    return inner.removeprefix(f"{outer}/") if inner.startswith(f"{outer}/") else None


@lru_cache(maxsize=_KNOWN_MAX)
def spellings(text: str) -> tuple[str, ...]:
    """The texts under which a place may be known to others, itself first: one object store has
    several schemes, a NameNode's usual port may be left out, and so may a default file system.
    A text that is no place (others wrote it) is only itself."""
    try:
        parsed = parse_uri(text)
    except LocationError:
        return (text,)
    scheme = _SAME_FILE_SYSTEM.get(parsed.scheme, parsed.scheme)
    if parsed.scheme in BUCKET_SCHEMES:
        schemes = {scheme, *(alias for alias, real in _SAME_FILE_SYSTEM.items() if real == scheme)}
        prefixes = [f"{alias}://{parsed.authority}" for alias in sorted(schemes)]
    elif scheme == "hdfs" and parsed.authority:
        host = parsed.authority.removesuffix(_HDFS_PORT)
        ports = (parsed.authority,) if ":" in host else (host, host + _HDFS_PORT)
        prefixes = [*(f"hdfs://{authority}" for authority in ports), ""]
    elif scheme == "file":
        prefixes = ["file:", "file://", ""]
    else:
        prefixes = []
    return tuple(dict.fromkeys((text, parsed.uri, *(prefix + parsed.path for prefix in prefixes))))


def is_below(inner: str, outer: str) -> bool:
    """Whether a place is another one or below it, however each of them is spelled.

    Two file systems are taken for one where their names leave that open (a bare path may be of
    either): this is for refusing. Who allows asks `Location.is_below`.
    """
    return path_below(inner, outer) is not None or any(
        path_below(spelling, other) is not None
        for spelling in spellings(inner)
        for other in spellings(outer)
    )


def is_inside(inner: str, outer: str) -> bool:
    """Whether a place is below another one, and not the same."""
    if path_below(inner.rstrip("/"), outer):
        return True  # no need to look at their spellings
    return is_below(inner, outer) and not is_below(outer, inner)


@dataclass(frozen=True, slots=True)
class Location:
    """A path of one file system, and its URI."""

    uri: str
    path: str
    volume: Volume = field(repr=False)

    @property
    def name(self) -> str:
        """The last level of the path."""
        return self.path.rpartition("/")[2]

    @property
    def parent(self) -> Location:
        """The directory above; a root is its own parent."""
        if parse_uri(self.uri).path == "/":
            return self
        uri, path = self.uri.rpartition("/")[0], self.path.rpartition("/")[0]
        if not path:
            return Location(uri + "/", "/", self.volume)
        return Location(uri, path, self.volume)

    def is_below(self, outer: Location) -> bool:
        """Whether it is another place of the same file system, or below it; links are not
        followed."""
        return self.volume is outer.volume and is_within(self.path, outer.path)

    def child(self, relative: str) -> Location:
        """A path below; the empty text is the location itself."""
        if not relative:
            return self
        uri = self.uri if self.uri.endswith("/") else f"{self.uri}/"
        path = self.path if self.path.endswith("/") else f"{self.path}/"
        return Location(uri + relative, path + relative, self.volume)

    def status(self) -> FileStatus | None:
        """What is there; None if nothing is."""
        return self.volume.status(self.path)

    def chunks(self) -> Iterator[bytes]:
        """The bytes of the file, piece by piece."""
        with self.volume.open_input(self.path) as stream:
            while data := stream.read(READ_BYTES):
                yield data

    def checksum(self) -> str:
        """The file system's own checksum, or the one that HDFS would give for these bytes."""
        if self.volume.capabilities.has_native_checksum:
            return self.volume.native_checksum(self.path)
        with self.volume.open_input(self.path) as stream:
            return composite_checksum(stream, HDFS_LAYOUT)

    def checksum_like(self, like: str) -> str:
        """The checksum to compare with another one: of the same mode and layout.

        A file system's own is asked first; where it differs, the bytes decide (a copy may have
        other block sizes).
        """
        if self.volume.capabilities.has_native_checksum:
            native = self.volume.native_checksum(self.path)
            if native == like:
                return native
        with self.volume.open_input(self.path) as stream:
            return checksum_like(stream, like)


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedFile:
    """One name below a directory; `path` is relative to it (empty: the listed path is a file)."""

    path: str
    kind: FileKind
    size_bytes: int
    mtime_ms: int | None

    @property
    def is_hidden(self) -> bool:
        """Whether a level of its path starts with a dot: what the ChangeManager does not keep."""
        return any(level.startswith(".") for level in self.path.split("/"))


def list_tree(location: Location) -> tuple[ListedFile, ...]:
    """Everything below a directory, links not followed; directories before what is in them.

    A plain file gives one entry with an empty path; nothing there gives none.
    """
    return tuple(walk_tree(location))


def walk_tree(location: Location) -> Iterator[ListedFile]:
    """The same one by one, for who may not want all: a directory is listed when it is come to."""
    status = location.status()
    if status is None:
        return
    if status.kind is not FileKind.DIRECTORY:
        yield _listed("", status)
        return
    # No recursion: the server makes what a client names, thousands of levels deep.
    listings = [(location, "", iter(location.volume.children(location.path)))]
    while listings:
        directory, prefix, children = listings[-1]
        child = next(children, None)
        if child is None:
            listings.pop()
            continue
        relative = prefix + child.name
        yield _listed(relative, child)
        if child.kind is FileKind.DIRECTORY:
            below = directory.child(child.name)
            listings.append((below, f"{relative}/", iter(below.volume.children(below.path))))


def _listed(relative: str, status: FileStatus) -> ListedFile:
    return ListedFile(
        path=relative, kind=status.kind, size_bytes=status.size_bytes, mtime_ms=status.mtime_ms
    )


Resolver = Callable[[str], Location]
"""Turns a path or URI into a location; everything in this package is given one."""

VolumeFactory = Callable[[str, str], Volume]
"""Opens the file system of a scheme and an authority."""


class FsspecResolver:
    """Resolves through fsspec; one volume for each file system, so that two paths can be compared.

    `default` is the file system of bare paths (Hadoop's fs.defaultFS), such as `hdfs://host:8020`.
    `one_name` gives the authority by which all names of a file system are known, from a scheme and
    an authority.
    """

    def __init__(
        self,
        open_volume: VolumeFactory = open_volume,
        default: str = "file:/",
        one_name: Callable[[str, str], str] = one_name_of,
    ) -> None:
        self._open = open_volume
        self._one_name = one_name
        self._default = parse_uri(default)
        self._volumes: dict[tuple[str, str], Volume] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process opens its own file systems."""
        return FsspecResolver, (self._open, self._default.uri, self._one_name)

    def __call__(self, text: str) -> Location:
        """The location that a path or URI names. Raises LocationError."""
        parsed = parse_uri(text)
        if not parsed.scheme:
            parsed = ParsedUri(
                scheme=self._default.scheme, authority=self._default.authority, path=parsed.path
            )
        in_bucket = parsed.scheme in BUCKET_SCHEMES
        if in_bucket and not parsed.authority:
            raise LocationError(f"{text!r} names no bucket; write {parsed.scheme}://BUCKET/…")
        # One object store holds all buckets; elsewhere the authority is the file system.
        scheme = _SAME_FILE_SYSTEM.get(parsed.scheme, parsed.scheme)
        key = (scheme, "" if in_bucket else self._one_name(scheme, parsed.authority))
        if key not in self._volumes:  # of two threads that open it, one wins
            self._volumes.setdefault(key, self._open(*key))
        path = f"{parsed.authority}{parsed.path}".rstrip("/") if in_bucket else parsed.path
        return Location(parsed.uri, path, self._volumes[key])
