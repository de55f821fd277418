"""One configured host as something to ask: it answers for itself, and only what the contract lets out is passed on."""

from __future__ import annotations

import random
import shlex
import threading
import time
from typing import Any

from relay.client.command import CommandStreams
from relay.client.deadline import Deadline
from relay.client.faults import Busy, ConnectionLost, ProtocolFault
from relay.client.host_ids import SSH
from relay.client.hosts_file import Host
from relay.client.protocol import JsonRpcClient, MethodNotFound
from relay.client.streams import Connection
from relay.contract import exposure, requests, responses

#: How long one host may take over one question, in seconds, connecting included; a search may wait 5 s for freshness.
TIMEOUT = 15.0
#: How often a busy server is tried, and the seconds between: at random, so that many of us do not come together.
_ATTEMPTS, _PAUSE = 4, (0.2, 1.2)


class RemoteHost:
    """The agent of ``host``, started by the first question and kept for the next; a context manager.

    ``interactive`` lets the connection ask for a password or a passphrase, on a terminal only; ``accept_new`` adds an
    unknown host key. ``close()`` may be called by any thread and ends a question that another one waits for.
    """

    def __init__(self, host: Host, *, interactive: bool = False, accept_new: bool = False) -> None:
        self.id = str(host.id)
        self.name = host.id.label
        self._host = host
        self._interactive = interactive
        self._accept_new = accept_new
        self._connection: Connection | None = None
        self._client: JsonRpcClient | None = None
        self._closed = False
        self._lock = threading.Lock()

    def __enter__(self) -> RemoteHost:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def search(self, request: requests.SearchRequest, timeout: float = TIMEOUT) -> dict[str, Any]:
        """The host's response to ``request``, of the contract's shape, its hits stamped with this host's id.

        ``timeout`` is in seconds, connecting included. Raises ClientFault.
        """
        try:
            answer = self._call(requests.SEARCH_METHOD, requests.search_params(request), timeout)
        except MethodNotFound:
            return responses.unavailable(responses.NO_SERVICE)
        try:
            response = exposure.for_relay(responses.parse_response(answer))
        except responses.InvalidPayload as error:
            raise self._invalid() from error
        self._check_page(response, request)
        if response["kind"] == "results":
            response["hits"] = [{**hit, "executionHostId": self.id} for hit in response["hits"]]
        return response

    def status(self, timeout: float = TIMEOUT) -> dict[str, Any]:
        """The host's status; a host of a version without one has the absent-service status. Raises ClientFault."""
        try:
            answer = self._call(requests.STATUS_METHOD, {}, timeout)
        except MethodNotFound:
            return dict(responses.ABSENT_STATUS)
        try:
            return exposure.status_for_relay(responses.parse_status(answer))
        except responses.InvalidPayload as error:
            raise self._invalid() from error

    def stderr(self) -> bytes:
        """The last the host wrote to stderr, for its account's owner who asks what is wrong."""
        return self._client.stderr() if self._client else b""

    def close(self) -> None:
        """End the agent and the connection; never raises."""
        with self._lock:
            self._closed = True
            client, connection = self._client, self._connection
        if client:
            client.close()
        if connection:
            connection.close()

    def _call(self, method: str, params: object, timeout: float) -> Any:
        deadline = Deadline(timeout)
        if self._client is None:
            self._start(deadline)
            if self._interactive:  # the time a person took over a passphrase is not the host's
                deadline = Deadline(timeout)
        assert self._client is not None
        return self._client.call(method, params, deadline.left())

    def _start(self, deadline: Deadline) -> None:
        if self._host.id.kind == SSH:
            from relay.client.launcher import remote_command

            remedy = f"Install it: `relay-installer install {shlex.quote(self.name)}`."
            connection = self._connected(deadline)
            self._keep(connection)
            streams = connection.open(remote_command("serve"))
        else:
            remedy = (
                "Its command must start `relay serve`: correct it with"
                f" `relay hosts add {shlex.quote(self.name)} -- COMMAND`."
            )
            assert self._host.command is not None
            streams = CommandStreams(self._host.command)
        self._keep(JsonRpcClient(streams, self.name, remedy))

    def _connected(self, deadline: Deadline) -> Connection:
        """A connection; a server that takes no further one (many hosts behind one bastion) is tried again."""
        from relay.client import ssh

        attempt = 1
        while True:
            try:
                return ssh.connect(
                    self._host.id.name,
                    timeout=deadline.left(),
                    interactive=self._interactive,
                    accept_new=self._accept_new,
                    transport=self._host.transport,
                )
            except Busy:
                pause = random.uniform(*_PAUSE)
                if attempt == _ATTEMPTS or self._closed or deadline.left() < 2 * pause:
                    raise
            attempt += 1
            time.sleep(pause)

    def _keep(self, opened: Connection | JsonRpcClient) -> None:
        """Hold what was opened, or close it when ``close()`` was called while it was being opened."""
        with self._lock:
            if isinstance(opened, JsonRpcClient):
                self._client = opened
            else:
                self._connection = opened
            closed = self._closed
        if closed:
            opened.close()
            raise ConnectionLost(f"The connection to {self.name} was closed.")

    def _check_page(self, response: dict[str, Any], request: requests.SearchRequest) -> None:
        if response["kind"] != "results":
            return
        page = response["page"]
        cursor = page["cursor"] or ""
        if len(response["hits"]) > request.limit or (page["hasMore"] and not cursor):
            raise self._invalid()
        if not (cursor.isascii() and cursor.isprintable()):  # it is printed as it is, since it must be typed so
            raise self._invalid()

    def _invalid(self) -> ProtocolFault:
        upgrade = f": `relay-installer upgrade {self.name}`" if self._host.id.kind == SSH else ""
        return ProtocolFault(f"{self.name} answered in a shape we do not know. Bring its agent up to date{upgrade}.")
