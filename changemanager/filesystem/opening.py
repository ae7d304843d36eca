"""Opens file systems: the one place that knows which client speaks to which scheme.

A client is imported where it is needed: that of HTTP alone takes longer than many a verb's work.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

import fsspec
from fsspec import AbstractFileSystem

from changemanager.errors import LocationError
from changemanager.filesystem.driver_errors import ObjectStoreDriver
from changemanager.filesystem.local import LocalVolume
from changemanager.filesystem.plain import OBJECT_STORE, PlainVolume
from changemanager.filesystem.volume import Volume
from changemanager.hadoop import HadoopConfig

if TYPE_CHECKING:
    from changemanager.filesystem.webhdfs import HttpFileSystem

BUCKET_SCHEMES = frozenset({"s3", "s3a", "s3n", "gs", "gcs", "abfs", "abfss"})
"""Object stores: the authority of a URI is a bucket, the file system is the store."""
_KNOWN = BUCKET_SCHEMES | {"file", "hdfs", "memory", "webhdfs"}
"""fsspec has drivers for many more, which promise less than an archive needs."""

_NO_HADOOP = HadoopConfig()
_INSTALL = "install the wheel of hms-bridge with the extra hdfs, as docs/howto/install.md says"


def open_volume(scheme: str, authority: str, hadoop: HadoopConfig = _NO_HADOOP) -> Volume:
    """The file system of a scheme and an authority.

    `hdfs:` is spoken natively where the client is installed, over HTTP where the configuration
    names an address, and refused else. Other schemes have fsspec's own settings (environment,
    fsspec.json) besides. Raises LocationError for a scheme without a client, OSError for a file
    system that cannot be reached.
    """
    if scheme not in _KNOWN:
        raise LocationError(
            f"no file system for {scheme}://{authority}: that scheme is not served; write the path "
            f"with one of {', '.join(sorted(_KNOWN - {'memory'}))}"
        )
    try:
        return volume_of(_open(scheme, authority, hadoop))
    except (ValueError, ImportError) as error:
        reason = str(error).partition("\n")[0]
        raise LocationError(
            f"no file system for {scheme}://{authority} ({reason}); install its fsspec driver, or "
            "write the path with another scheme"
        ) from error


def _open(scheme: str, authority: str, hadoop: HadoopConfig) -> AbstractFileSystem:
    if scheme == "hdfs":
        return _open_hdfs(authority, hadoop)
    if scheme == "webhdfs":
        return _over_http((authority,), hadoop)
    if scheme == "s3":
        from changemanager.filesystem.s3 import open_s3

        return open_s3(hadoop)
    options = {"use_listings_cache": False} if scheme in BUCKET_SCHEMES else {}
    return fsspec.filesystem(scheme, **options)


def one_name_of(scheme: str, authority: str, hadoop: HadoopConfig = _NO_HADOOP) -> str:
    """The authority by which a file system is known here: `nn` and `nn:8020` are one HDFS."""
    return hadoop.one_authority(authority) if scheme == "hdfs" and authority else authority


def _open_hdfs(authority: str, hadoop: HadoopConfig) -> AbstractFileSystem:
    if not authority:
        raise LocationError(
            "hdfs:/// names no cluster; write hdfs://HOST:PORT/…, or set fs.defaultFS to it"
        )
    # HTTP would need SPNEGO, which is not offered; the native client has Kerberos.
    addresses = () if hadoop.is_kerberos else hadoop.http_addresses(authority)
    web = _over_http(addresses, hadoop) if addresses else None
    has_rpc = _has_rpc_address(authority, hadoop)
    is_native = (
        hadoop.is_native_allowed
        and find_spec("hdfs_native") is not None
        and (web is None or has_rpc)
    )
    if not is_native:
        if web is None:
            raise _without_client(authority, hadoop)
        return web
    from changemanager.filesystem.hdfs import HdfsFileSystem

    return HdfsFileSystem(
        authority if has_rpc else hadoop.rpc_addresses(authority)[0],
        dict(hadoop.values),
        umask=hadoop.umask,
        user=hadoop.user,
        web=web,
    )


def _over_http(addresses: Sequence[str], hadoop: HadoopConfig) -> HttpFileSystem:
    from changemanager.filesystem.webhdfs import HttpFileSystem

    return HttpFileSystem(addresses, user=_user(hadoop), umask=hadoop.umask)


def _without_client(authority: str, hadoop: HadoopConfig) -> LocationError:
    if hadoop.is_kerberos:
        return LocationError(
            f"hdfs://{authority} asks for Kerberos (hadoop.security.authentication), which only "
            f"the native client has: {_INSTALL}, and let hms.bridge.hdfs.client be auto"
        )
    return LocationError(
        f"hdfs://{authority} needs a client: {_INSTALL}, or name its HTTP address in "
        "hms.bridge.webhdfs.addresses"
    )


def _user(hadoop: HadoopConfig) -> str:
    """As Hadoop's client without Kerberos; without a name HTTP's user would be `dr.who`."""
    return hadoop.user or os.environ.get("HADOOP_USER_NAME") or getpass.getuser()


def _has_rpc_address(authority: str, hadoop: HadoopConfig) -> bool:
    """A name without port that nothing explains has none."""
    return ":" in authority or hadoop.is_name_service(authority)


def volume_of(fs: AbstractFileSystem) -> Volume:
    """What an fsspec file system can do: the one place that knows their differences."""
    protocols = {fs.protocol} if isinstance(fs.protocol, str) else set(fs.protocol)
    if protocols & {"file", "local"}:
        return LocalVolume()
    if "webhdfs" in protocols:
        from changemanager.filesystem.webhdfs import WebHdfsVolume

        return WebHdfsVolume(fs)
    if "hdfs" in protocols:
        from changemanager.filesystem.hdfs import HdfsVolume

        return HdfsVolume(fs)
    return PlainVolume(ObjectStoreDriver(fs), OBJECT_STORE)
