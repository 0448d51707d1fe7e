"""The suite for what a host gives the outcome journal: its `DurableWriter` (authorities, "Outcome journal").

The journal itself is no port: its file has one exact format. `WRITER_CHECKS` has the checks by name. Each takes a
function that opens the writer of one artifact as another process would, on a state that begins empty, and raises
`AssertionError` with what was not held.
"""

from collections.abc import Callable, Mapping
from typing import Final

from kexpr.authority.journal import DurableWriter

__all__ = ["WRITER_CHECKS", "OpenWriter"]

OpenWriter = Callable[[], DurableWriter]

_ATTEMPT: Final = "0123456789abcdef" * 2
_OTHER: Final = "fedcba9876543210" * 2
_BODY: Final = "제목\n차분히 살펴보니 저장된 기록을 확인했습니다.\n\n끝 "
"""With a last blank, an empty line and what is not ASCII: none of it may change."""


def nothing_is_read_before_a_write(open_writer: OpenWriter) -> None:
    assert open_writer().read(_ATTEMPT) is None, "a body of an attempt that wrote none"


def a_body_is_durable_when_the_write_returns(open_writer: OpenWriter) -> None:
    open_writer().write(_ATTEMPT, _BODY)
    assert open_writer().read(_ATTEMPT) is not None, "another process does not find the body"


def the_exact_body_is_read(open_writer: OpenWriter) -> None:
    writer = open_writer()
    writer.write(_ATTEMPT, _BODY)
    assert writer.read(_ATTEMPT) == _BODY, "the body was changed"


def a_body_is_its_attempts_alone(open_writer: OpenWriter) -> None:
    writer = open_writer()
    writer.write(_ATTEMPT, _BODY)
    assert writer.read(_OTHER) is None, "another attempt's body"


WRITER_CHECKS: Final[Mapping[str, Callable[[OpenWriter], None]]] = {
    check.__name__: check
    for check in (
        nothing_is_read_before_a_write,
        a_body_is_durable_when_the_write_returns,
        the_exact_body_is_read,
        a_body_is_its_attempts_alone,
    )
}
