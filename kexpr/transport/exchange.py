"""The limits of one request, carried through every layer, and the first reason it failed for."""

import threading
import time
from typing import Final

from kexpr.codes import Reason
from kexpr.errors import Rejected

__all__ = ["ANSWER_BYTES", "CONNECT_S", "HEAD_BYTES", "POOL_S", "READ_S", "REQUEST_BYTES", "WRITE_S", "Exchange"]

REQUEST_BYTES: Final = 6_144
"""Whole HTTP body of the request (contract, section 3)."""
ANSWER_BYTES: Final = 65_536
"""Whole HTTP body of the answer: the completion around a message of at most 16 KiB."""
HEAD_BYTES: Final = 32_768
"""All response heads together, interim ones included: a flood of `100 Continue` ends here."""
_CIPHERTEXT_BYTES: Final = 262_144
"""All bytes from the peer: handshake, session tickets, padding and chunk framing included."""

CLIENT_TIMEOUT_S: Final = 3.0
CONNECT_S: Final = 1.0
READ_S: Final = 2.0
WRITE_S: Final = 1.0
POOL_S: Final = 1.0


class Exchange:
    """One request. Times are seconds of `time.monotonic()`; `deadline` is absolute."""

    __slots__ = ("_deadline", "_latch", "body", "head_done", "plaintext_bytes", "reason", "received_bytes", "sent")

    def __init__(self, deadline: float) -> None:
        self._deadline = deadline
        self._latch = threading.Lock()
        self.body = b""
        self.reason: Reason | None = None
        self.sent = False
        self.head_done = False
        self.plaintext_bytes = 0
        self.received_bytes = 0

    def take(self) -> bool:
        """True for the first caller ever, who then has at most the client timeout."""
        if not self._latch.acquire(blocking=False):
            return False
        self._deadline = min(self._deadline, time.monotonic() + CLIENT_TIMEOUT_S)
        return True

    def failed(self, reason: Reason) -> Rejected:
        """What to raise. The first reason is kept: the layers above may wrap or replace the exception."""
        if self.reason is None:
            self.reason = reason
        return Rejected(reason)

    def timed_out(self, end: float) -> Rejected:
        """What to raise when a step that had until `end` did not make it."""
        return self.failed(Reason.TIMEOUT_DEADLINE if end >= self._deadline else Reason.TIMEOUT_STEP)

    def end_of_step(self, seconds: float) -> float:
        """When a step that may take `seconds` has to be over; fails when there is no time left for it."""
        now = time.monotonic()
        if now >= self._deadline:
            raise self.failed(Reason.TIMEOUT_DEADLINE)
        return min(now + seconds, self._deadline)

    def left(self, end: float) -> float:
        """Seconds left of a step, more than zero; fails when it is over."""
        left = end - time.monotonic()
        if left <= 0:
            raise self.timed_out(end)
        return left

    def check_deadline(self) -> None:
        self.end_of_step(0)

    def count_received(self, count: int) -> None:
        """Bytes from the socket, before decryption."""
        self.received_bytes += count
        if self.received_bytes > _CIPHERTEXT_BYTES:
            raise self.failed(Reason.HTTP_BODY_SIZE if self.head_done else Reason.HTTP_HEAD_SIZE)

    def check_head(self) -> None:
        """Called before more plaintext is read: as long as the head is not complete, all of it so far is head."""
        if not self.head_done and self.plaintext_bytes >= HEAD_BYTES:
            raise self.failed(Reason.HTTP_HEAD_SIZE)
