"""uvicorn around the application: one process, one event loop, silent logs, a clean end on SIGTERM."""

import ipaddress
import logging
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import uvicorn

from harness.readiness.assess import assess
from harness.reading import EvidenceReader
from harness.service.app import application
from harness.service.protocol import BoundedProtocol
from harness.service.schedule import RunDue, Scheduler
from harness.service.shield import LOOPBACK_NAMES
from kexpr.clock import SystemClock
from kexpr.ledger.protocol import Head

__all__ = ["ServiceOptions", "is_loopback", "serve"]

_GRACE_SECONDS: Final = 1
_MAX_HEAD_BYTES: Final = 16 * 1024
_BACKLOG: Final = 128


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """`evidence` is the directory of the ledger. `tls` is a certificate chain and its key, both PEM files."""

    evidence: Path
    host: str
    port: int
    reports: Path | None = None
    allowed_hosts: tuple[str, ...] = ()
    anchor: Head | None = None
    tls: tuple[Path, Path] | None = None


def is_loopback(host: str) -> bool:
    """Whether a listening address can be reached from this host alone."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def serve(options: ServiceOptions, run_due: RunDue | None, announce: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT; `announce` gets the address once connections are taken.

    `run_due` is run now and again, when there is one. Raises `OSError` when it cannot listen or has no such key.
    """
    clock = SystemClock()
    with _listen(options.host, options.port) as listener:
        reader = EvidenceReader(options.evidence, assess, clock=clock, anchor=options.anchor)
        scheduler = None if run_due is None else Scheduler(run_due, clock)
        app = application(
            reader,
            allowed_hosts=LOOPBACK_NAMES | {options.host.lower(), *map(str.lower, options.allowed_hosts)},
            reports=options.reports,
            schedule=None if scheduler is None else scheduler.state,
        )
        server = uvicorn.Server(_config(app, options))
        server.config.load()
        _end_on_signals()
        announce(_url(listener, "https" if options.tls else "http"))
        if scheduler is not None:
            scheduler.start()
        try:
            server.run(sockets=[listener])
        finally:
            if scheduler is not None and not scheduler.stop():
                announce("a call did not end in time; it is an orphan")


def _config(app: Callable[..., object], options: ServiceOptions) -> uvicorn.Config:
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers = [logging.NullHandler()]
        logger.propagate = False
    certificate, key = options.tls or (None, None)
    return uvicorn.Config(
        app,
        http=BoundedProtocol,
        ws="none",
        loop="asyncio",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=_MAX_HEAD_BYTES,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )


def _listen(host: str, port: int) -> socket.socket:
    """Listening already, so that who is told the address can connect."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


def _url(listener: socket.socket, scheme: str) -> str:
    host, port = listener.getsockname()[:2]
    return f"listening on {scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def _end_on_signals() -> None:
    """uvicorn stops at these signals and raises them again for the handlers before its own: an end, not a death."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
