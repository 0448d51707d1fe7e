"""An OpenAI-compatible provider on this machine: real TLS for `api.openai.com` on a Unix socket, HTTP by hand.

By hand, so that it can misbehave at the level of bytes. One thread a connection, no port, no DNS; the socket lives in a
private temporary directory. A call is one exchange: a connection's first, or one more on a connection kept open; calls
are numbered from 1 in the order they start, and the fault plan speaks of these numbers.
"""

import shutil
import socket
import ssl
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from harness.rehearsal.authority import Authority
from harness.rehearsal.completion import Answer, UsageEstimator, build_completion, encode, estimate_usage
from harness.rehearsal.faults import Fault, FaultPlan
from harness.rehearsal.misbehaviour import CUT, Call, Pause, Step
from kexpr.codes import Outcome
from kexpr.transport import Seam

__all__ = ["Recorded", "RehearsalServer"]

Answerer = Callable[[bytes], bytes | Answer]
"""From the request body to the answer's content (UTF-8) or a whole `Answer`."""

_BEHAVES: Final = Fault(Outcome.SHADOW_SELECTED)
_SOCKET_PATH_BYTES: Final = 100
"""A Unix socket's path may have 107 bytes; a temporary directory may be deep."""
_IDLE_S: Final = 30.0
_GOODBYE_S: Final = 0.5
_HEAD_BYTES: Final = 65_536
_BODY_BYTES: Final = 1_048_576


@dataclass(frozen=True, slots=True)
class Recorded:
    """One request as it came, for tests."""

    head: bytes = field(repr=False)
    body: bytes = field(repr=False)


class RehearsalServer:
    """A context manager; `seam` is what `ClientFactory` takes. Nothing it was sent is kept unless `record` is set."""

    def __init__(
        self,
        answer: Answerer,
        plan: FaultPlan | None = None,
        *,
        estimate: UsageEstimator = estimate_usage,
        record: bool = False,
    ) -> None:
        self._answer = answer
        self._plan = plan or FaultPlan()
        self._estimate = estimate
        self._record = record
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._connections: set[socket.socket] = set()
        self._threads: set[threading.Thread] = set()
        self._calls = 0
        self._requests = 0
        self.label = ""
        """What the driver is doing now, for the plan's selectors, e.g. `day9:weekly`."""
        self.recorded: list[Recorded] = []

    @property
    def calls(self) -> int:
        """Exchanges started: failed handshakes count."""
        with self._lock:
            return self._calls

    @property
    def requests(self) -> int:
        """Requests received in full."""
        with self._lock:
            return self._requests

    @property
    def seam(self) -> Seam:
        return Seam(str(self._directory / "s"), str(self._directory / "ca.pem"))

    def __enter__(self) -> Self:
        self._directory = _private_directory()
        self._authority = Authority()
        self._authority.write_root(self._directory / "ca.pem")
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(self._directory / "s"))
        self._listener.listen(64)
        self._start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        _shut_down(self._listener)
        with self._lock:
            open_connections = tuple(self._connections)
            threads = tuple(self._threads)
        for connection in open_connections:
            _shut_down(connection)
        for thread in threads:
            thread.join(5)
        self._listener.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _start(self, run: Callable[[], None]) -> None:
        def guarded() -> None:
            try:
                run()
            except (OSError, ValueError):
                # The peer went away, or the server stops: both are ordinary here.
                pass
            finally:
                with self._lock:
                    self._threads.discard(threading.current_thread())

        thread = threading.Thread(target=guarded, name="rehearsal", daemon=True)
        with self._lock:
            self._threads.add(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._stopping.is_set():
            connection, _ = self._listener.accept()
            self._track(connection)
            self._start(lambda accepted=connection: self._serve(accepted))  # type: ignore[misc]

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(_IDLE_S)
        fault = self._begin_call()
        try:
            if fault.handshake is not None:
                # Closing with the client's greeting unread would be a reset.
                connection.recv(_HEAD_BYTES)
                connection.sendall(fault.handshake)
                return
            context = self._authority.server_context(fault.certificate)
            # Takes the socket over; without I/O, so that a stop can wake the handshake as well.
            connection = context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
            self._track(connection)
            self._serve_calls(connection, fault)
        finally:
            with self._lock:
                self._connections.discard(connection)
            connection.close()

    def _track(self, connection: socket.socket) -> None:
        with self._lock:
            self._connections = {other for other in self._connections if other.fileno() >= 0} | {connection}

    def _serve_calls(self, tls: ssl.SSLSocket, first: Fault) -> None:
        tls.do_handshake()
        buffer = bytearray()
        fault: Fault | None = first
        while (request := _read_request(tls, buffer)) is not None:
            call_fault = fault or self._begin_call()
            fault = None
            if not self._play(tls, call_fault, request) or _wants_close(request.head) or call_fault is not _BEHAVES:
                return

    def _begin_call(self) -> Fault:
        with self._lock:
            self._calls += 1
            return self._plan.fault_for(self._calls, self.label) or _BEHAVES

    def _play(self, tls: ssl.SSLSocket, fault: Fault, request: Recorded) -> bool:
        """Send the script; False when the connection was cut."""
        with self._lock:
            self._requests += 1
            number = self._requests
            if self._record:
                self.recorded.append(request)
        call = Call(request.head, request.body, self._completion(fault, request.body, number))
        for step in fault.script(call):
            if step is CUT or self._stopping.is_set():
                return False
            self._take(tls, step)
        if _wants_close(request.head) or fault is not _BEHAVES:
            _say_goodbye(tls)
        return True

    def _take(self, tls: ssl.SSLSocket, step: Step) -> None:
        if isinstance(step, Pause):
            self._stopping.wait(step.seconds)
        elif isinstance(step, bytes):
            tls.sendall(step)

    def _completion(self, fault: Fault, request_body: bytes, number: int) -> bytes:
        given = self._answer(request_body)
        answer = given if isinstance(given, Answer) else Answer(given.decode())
        usage = answer.usage or self._estimate(request_body, answer.content)
        if fault.content is not None:
            answer = Answer(fault.content(answer.content), answer.finish_reason)
        completion = build_completion(answer, usage, number)
        return encode(completion if fault.completion is None else fault.completion(completion))


def _private_directory() -> Path:
    directory = Path(tempfile.mkdtemp(prefix="kexpr-"))
    if len(str(directory / "s").encode()) > _SOCKET_PATH_BYTES:
        directory.rmdir()
        directory = Path(tempfile.mkdtemp(prefix="kexpr-", dir="/tmp"))
    return directory


def _shut_down(connection: socket.socket) -> None:
    """Wake whoever waits on it."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


def _read_request(tls: ssl.SSLSocket, buffer: bytearray) -> Recorded | None:
    """The next request of the connection; None when the client is done. Raises `ValueError` for one that is too big."""
    while (end := buffer.find(b"\r\n\r\n")) < 0:
        if len(buffer) > _HEAD_BYTES:
            raise ValueError
        if not _receive(tls, buffer):
            return None
    head = bytes(buffer[: end + 4])
    length = int(_header(head, b"content-length") or b"0")
    if length > _BODY_BYTES:
        raise ValueError
    while len(buffer) < end + 4 + length:
        if not _receive(tls, buffer):
            return None
    body = bytes(buffer[end + 4 : end + 4 + length])
    del buffer[: end + 4 + length]
    return Recorded(head, body)


def _receive(tls: ssl.SSLSocket, buffer: bytearray) -> bool:
    data = tls.recv(65_536)
    buffer += data
    return bool(data)


def _header(head: bytes, name: bytes) -> bytes | None:
    for line in head.split(b"\r\n")[1:]:
        found, _, value = line.partition(b":")
        if found.lower() == name:
            return value.strip()
    return None


def _wants_close(head: bytes) -> bool:
    return (_header(head, b"connection") or b"").lower() == b"close"


def _say_goodbye(tls: ssl.SSLSocket) -> None:
    """TLS's own end, so that a client can tell it from a cut; it may already be gone."""
    tls.settimeout(_GOODBYE_S)
    try:
        tls.unwrap()
    except (OSError, ValueError):
        pass
