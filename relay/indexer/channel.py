"""How the processes of one account talk about their index: a socket in the state folder that its writer listens on."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from typing import Any, Callable, Dict, Iterator, Optional

FILE_NAME = "writer.sock"

#: sun_path holds about so many bytes; a longer path is reached through the folder's descriptor.
_PATH_LIMIT = 100
_BACKLOG = 64
#: Seconds within which the writer answers what needs no work.
ANSWER_TIME = 1.0


class Listener:
    """The writer's end. ``status`` gives the writer's own status; ``reconcile`` waits for a pass: True when it is done.

    Where the file system has no sockets there is no listener, and followers say that they could not be current.
    """

    def __init__(
        self,
        state_folder: str,
        status: Callable[[], Dict[str, Any]],
        reconcile: Callable[[], bool],
        check: Callable[[], None],
    ) -> None:
        self._status = status
        self._reconcile = reconcile
        self._check = check
        self._path = os.path.join(state_folder, FILE_NAME)
        self._socket: Optional[socket.socket] = None
        with contextlib.suppress(OSError):
            self._listen()

    def _listen(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.remove(self._path)  # the holder of the writer's lock is the only one who may
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with _short(self._path) as address:
                listening.bind(address)
            os.chmod(self._path, 0o600)
            listening.listen(_BACKLOG)
        except OSError:
            listening.close()
            raise
        self._socket = listening
        threading.Thread(target=self._accept, args=(listening,), name="relay-channel", daemon=True).start()

    def _accept(self, listening: socket.socket) -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), name="relay-channel-answer", daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError, ValueError):
            connection.settimeout(ANSWER_TIME)
            asked = connection.recv(64).strip()
            connection.settimeout(None)
            answer: Dict[str, Any] = {}
            if asked == b"status":
                answer = self._status()
            elif asked == b"reconcile":
                try:
                    answer = {"done": self._reconcile()}
                except Exception as error:  # the pass failed there: whoever waits is told here
                    answer = {"failed": str(error)}
            elif asked == b"check":
                self._check()
            connection.sendall(json.dumps(answer).encode() + b"\n")

    def close(self) -> None:
        """Stop listening; waiting peers see the end of their connection. May be called twice."""
        if self._socket is None:
            return
        with contextlib.suppress(OSError):
            os.remove(self._path)
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._socket = None


def ask(state_folder: str, question: str, timeout: float = ANSWER_TIME) -> Optional[Dict[str, Any]]:
    """The writer's answer to ``status``, ``reconcile`` or ``check``; None when there is no writer or it went away.

    Raises TimeoutError when it is there and does not answer within ``timeout`` seconds.
    """
    path = os.path.join(state_folder, FILE_NAME)
    if not os.path.exists(path):
        return None
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.settimeout(max(0.001, timeout))
            with _short(path) as address:
                connection.connect(address)
            connection.sendall(question.encode() + b"\n")
            received = b""
            while not received.endswith(b"\n"):
                portion = connection.recv(1 << 16)
                if not portion:
                    return None
                received += portion
            answer = json.loads(received)
        except socket.timeout as error:
            raise TimeoutError("The writer of the index did not answer in time.") from error
        except (OSError, ValueError):
            return None
    return answer if isinstance(answer, dict) else None


@contextlib.contextmanager
def _short(path: str) -> Iterator[str]:
    """An address for a socket path of any length (Linux; elsewhere a long one fails, which callers survive)."""
    if len(os.fsencode(path)) <= _PATH_LIMIT or not os.path.isdir("/proc/self/fd"):
        yield path
        return
    folder = os.open(os.path.dirname(path), os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        yield f"/proc/self/fd/{folder}/{os.path.basename(path)}"
    finally:
        os.close(folder)
