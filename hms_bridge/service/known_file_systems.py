"""The file systems that a metastore connects to, because whoever runs it named them.

A location that a client gives may name any host. The server must not open a connection there for
it: it would become the client's way into the server's network.
"""

from __future__ import annotations

from collections.abc import Iterable

from changemanager.errors import LocationError
from changemanager.filesystem.opening import BUCKET_SCHEMES, one_name_of
from changemanager.hadoop import HadoopConfig
from changemanager.location import Location, Resolver, parse_uri
from hms_bridge.config.settings import KNOWN_FILE_SYSTEMS

_WITHOUT_HOST = BUCKET_SCHEMES | {"", "file", "memory"}
"""Their URIs name no host: a bucket is one of the store that is configured."""


class KnownFileSystems:
    """A resolver that refuses hosts that neither the given URIs nor Hadoop's settings name."""

    def __init__(self, resolve: Resolver, known: Iterable[str], hadoop: HadoopConfig) -> None:
        self._resolve = resolve
        self._hadoop = hadoop
        self._known = {self._name(uri) for uri in known if uri}

    def __call__(self, text: str) -> Location:
        """As the resolver. Raises LocationError for a host that is not known."""
        if not self.has(text):
            scheme, authority = parse_uri(text).file_system
            raise LocationError(
                f"{text}: this metastore connects to no host that a client names; add "
                f"{scheme}://{authority} to {KNOWN_FILE_SYSTEMS.name} if it is yours"
            )
        return self._resolve(text)

    def has(self, text: str) -> bool:
        """Whether a place is on a file system that may be asked. Raises LocationError for what is
        no place."""
        parsed = parse_uri(text)
        if parsed.scheme in _WITHOUT_HOST or not parsed.authority:
            return True
        is_service = parsed.scheme == "hdfs" and self._hadoop.is_name_service(parsed.authority)
        return is_service or self._name(text) in self._known

    def _name(self, uri: str) -> tuple[str, str]:
        scheme, authority = parse_uri(uri).file_system
        return scheme, one_name_of(scheme, authority, self._hadoop)
