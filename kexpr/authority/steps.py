"""What the authorities do the same way: open their ledger, append one step, ask the host."""

import secrets
from collections.abc import Callable
from typing import ParamSpec, Protocol, TypeVar

from kexpr.clock import Lease
from kexpr.codes import Mode
from kexpr.errors import AuthorityFailed, ClaimRefused, KexprError, StoreFault
from kexpr.failpoints import reach
from kexpr.ledger.protocol import Ledger, Projection, Record, Transaction

__all__ = ["LedgerOpener", "append", "ask", "holds", "new_attempt_id", "require_attempting"]

P = ParamSpec("P")
T = TypeVar("T")


class LedgerOpener(Protocol):
    """Opens the one ledger of an authority, for example `partial(JsonlLedger.open, directory, clock=clock)`."""

    def __call__(self, *, projection: Projection) -> Ledger: ...


def append(
    transaction: Transaction, step: str, record: Record, *, lease: Lease | None = None, mode: Mode | None = None
) -> None:
    """Append one row between the failpoints `<step>.before` and `<step>.after`."""
    reach(f"{step}.before")
    transaction.append(record, lease=lease, mode=mode)
    reach(f"{step}.after")


def ask(port: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call the host. What it raises may carry content and becomes `AuthorityFailed(HOST_PORT)`."""
    try:
        return port(*args, **kwargs)
    except KexprError:
        raise
    except Exception:  # noqa: BLE001 - the host's exception may carry content
        pass
    raise AuthorityFailed(StoreFault.HOST_PORT)


def holds(port: Callable[[], bool]) -> bool:
    """Whether the host's pins hold; a host that cannot say so has not said it."""
    try:
        return port()
    except KexprError:
        raise
    except Exception:  # noqa: BLE001 - the host's exception may carry content
        return False


def new_attempt_id() -> str:
    """Random, 128 bits, says nothing."""
    return secrets.token_hex(16)


def require_attempting(mode: Mode) -> None:
    """A disabled feature claims nothing."""
    if mode is Mode.DISABLED:
        raise ClaimRefused
