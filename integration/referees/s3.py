"""S3 as moto's server speaks it, on loopback."""

from __future__ import annotations

from integration.referees import install
from integration.referees.processes import Workplace, free_port, is_listening

ACCESS_KEY = "referee"
SECRET_KEY = "referee-secret"
REGION = "eu-central-1"  # moto refuses us-east-1 where s3fs names it


class S3:
    """A running server; its buckets live as long as it does."""

    def __init__(self, workplace: Workplace) -> None:
        self.port = free_port()
        self._server = workplace.start(
            "s3",
            [install.interpreter(), "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)],
        )
        self._server.wait_until(lambda: is_listening(self.port))

    @property
    def endpoint_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def storage_options(self) -> dict[str, object]:
        """What fsspec's s3 file system needs to reach this server."""
        return {
            "key": ACCESS_KEY,
            "secret": SECRET_KEY,
            "endpoint_url": self.endpoint_url,
            "client_kwargs": {"region_name": REGION},
        }

    def stop(self) -> None:
        self._server.stop()
