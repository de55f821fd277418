"""This machine as something to ask: its own index, in this process, with full exposure."""

from __future__ import annotations

import threading
from typing import Any

from relay.contract.requests import SearchRequest
from relay.service import Service


class LocalHost:
    """The service of this account, started by the first question; a context manager."""

    id = name = "local"

    def __init__(self) -> None:
        self._service: Service | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> LocalHost:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def search(self, request: SearchRequest, timeout: float = 0) -> dict[str, Any]:
        """The response of full exposure; ``timeout`` is a remote host's and means nothing here."""
        return self._started().search(request)

    def status(self, timeout: float = 0) -> dict[str, Any]:
        """The status of full exposure."""
        return self._started().status()

    def swept(self) -> bool:
        """Whether this machine's transcripts were ever looked through to the end."""
        return self.status()["lastSweepCompletedAt"] is not None

    def close(self) -> None:
        """Let go of the index."""
        with self._lock:
            service, self._service = self._service, None
        if service:
            service.close(2.0)

    def _started(self) -> Service:
        with self._lock:
            if self._service is None:
                self._service = Service.of_this_account()
                self._service.start()
            return self._service
