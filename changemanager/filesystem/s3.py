"""S3 by s3fs, with the settings that Hadoop's S3A has, and with OSErrors only."""

from __future__ import annotations

import asyncio
import errno
import re
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError, ConnectTimeoutError, ReadTimeoutError
from fsspec.asyn import sync_wrapper
from s3fs import S3FileSystem

from changemanager.errors import LocationError
from changemanager.hadoop import HadoopConfig

_ANONYMOUS = "AnonymousAWSCredentialsProvider"
_TIMES_SECONDS = {"connect_timeout": 10, "read_timeout": 60}
CALL_SECONDS_MAX = 900.0
"""Of all attempts. Who is about to write asks first whether he may (Expect: 100-continue), and
aiohttp waits for that answer without an end."""
_PATH_STYLE = "fs.s3a.path.style.access"
_QUOTA_CODES = frozenset({"QuotaExceeded", "XMinioAdminBucketQuotaExceeded"})
"""Of Ceph's gateway, and of MinIO."""
_FULL_CODES = frozenset({"InsufficientStorage", "XMinioStorageFull"})
_INSUFFICIENT_STORAGE = 507
_PER_BUCKET = re.compile(
    r"fs\.s3a\.bucket\.[^.]+(\.[^.]+)*\.(endpoint(\.region)?|access\.key|secret\.key|session\.token)"
)


class S3(S3FileSystem):  # type: ignore[misc]
    """s3fs, whose errors of network and credentials are OSErrors as those of every file system."""

    cachable = False
    retries = 2
    """Beside those of botocore, five with growing pauses: a store that takes a call and keeps quiet
    would be waited for half an hour otherwise, for each call."""

    async def _call_s3(self, method: str, *args: Any, **given: Any) -> Any:
        place = str(given.get("Bucket") or self.endpoint_url or "S3")
        try:
            return await asyncio.wait_for(
                super()._call_s3(method, *args, **given), CALL_SECONDS_MAX
            )
        except (ReadTimeoutError, ConnectTimeoutError, TimeoutError) as error:
            raise OSError(
                errno.EIO,  # fsspec leaves nothing of a TimeoutError
                f"S3 does not answer: {str(error) or method}; see whether the store of "
                "fs.s3a.endpoint stands still, then try again",
                place,
            ) from error
        except BotoCoreError as error:
            raise OSError(
                errno.EIO,
                f"S3 cannot be used: {error}; check fs.s3a.endpoint, fs.s3a.access.key and "
                "fs.s3a.secret.key, or the AWS_… environment",
                place,
            ) from error
        except OSError as error:
            full = _full(error)
            if full is None:
                raise
            raise full from error

    call_s3 = sync_wrapper(_call_s3)  # of files that are written; s3fs has its own method there


def _full(error: OSError) -> OSError | None:
    """The error of a storage that takes no more, as a full disk's; None for any other. AWS has no
    such limit, others that speak S3 have, each by a code of its own."""
    answer = error.__cause__.response if isinstance(error.__cause__, ClientError) else {}
    code = str(answer.get("Error", {}).get("Code", ""))
    sentence = answer.get("Error", {}).get("Message") or code
    if code in _QUOTA_CODES:
        advice = "raise the quota of the bucket or its owner, or remove objects"
        return OSError(errno.EDQUOT, f"S3: {sentence} ({code}); {advice}")
    status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode")
    if code in _FULL_CODES or status == _INSUFFICIENT_STORAGE:
        return OSError(errno.ENOSPC, f"S3: {sentence} ({code}); remove objects, or add storage")
    return None


def open_s3(hadoop: HadoopConfig) -> S3:
    """The object store of all buckets. Raises LocationError for settings of one bucket alone."""
    return S3(use_listings_cache=False, skip_instance_cache=True, **s3_options(hadoop))


def s3_options(hadoop: HadoopConfig) -> Mapping[str, Any]:
    """S3A's settings as s3fs takes them; what is not set is left to the AWS environment.

    As S3A: an endpoint without scheme is https unless fs.s3a.connection.ssl.enabled is false.
    """
    for name in hadoop.values:
        if _PER_BUCKET.fullmatch(name):
            raise LocationError(
                f"{name}: settings of one bucket are not understood; set fs.s3a.endpoint, "
                "fs.s3a.access.key and fs.s3a.secret.key for all of them"
            )
    options: dict[str, Any] = {
        "key": hadoop.get("fs.s3a.access.key") or None,
        "secret": hadoop.get("fs.s3a.secret.key") or None,
        "token": hadoop.get("fs.s3a.session.token") or None,
        "endpoint_url": _endpoint(hadoop),
    }
    known = {name: value for name, value in options.items() if value is not None}
    if hadoop.get("fs.s3a.aws.credentials.provider").endswith(_ANONYMOUS):
        known["anon"] = True
    region = hadoop.get("fs.s3a.endpoint.region")
    if region:
        known["client_kwargs"] = {"region_name": region}
    style = {"addressing_style": "path"} if hadoop.flag(_PATH_STYLE, default=False) else {}
    known["config_kwargs"] = {**_TIMES_SECONDS, **({"s3": style} if style else {})}
    return known


def _endpoint(hadoop: HadoopConfig) -> str | None:
    endpoint = hadoop.get("fs.s3a.endpoint")
    if not endpoint or "://" in endpoint:
        return endpoint or None
    is_encrypted = hadoop.flag("fs.s3a.connection.ssl.enabled", default=True)
    return f"{'https' if is_encrypted else 'http'}://{endpoint}"
