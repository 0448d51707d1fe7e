"""The ASGI application: /metrics /healthz /readyz / and /reports/."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from harness.metrics import Exposition
from harness.reading import EvidenceReader
from harness.service.files import ReportFiles
from harness.service.latest import Latest, Shown
from harness.service.shield import Shield
from harness.service.status import POLICY_OF_STATUS, Schedule, reports_page, status_page

__all__ = ["application"]

_METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_HTML: Final = "text/html; charset=utf-8"
_POLICY_OF_REPORTS: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Reports are files: they have a stricter policy of their own, and get no more from here than they need at most."""


def application(
    reader: EvidenceReader,
    *,
    allowed_hosts: frozenset[str],
    reports: Path | None,
    schedule: Callable[[], Schedule] | None,
) -> Shield:
    """Reads the evidence once, before it returns."""
    return Shield(_Pages(reader, reports, schedule).routes(), allowed_hosts)


class _Pages:
    def __init__(self, reader: EvidenceReader, reports: Path | None, schedule: Callable[[], Schedule] | None) -> None:
        self._reports = None if reports is None else ReportFiles(reports)
        self._schedule = schedule
        self._exposition = Exposition(reader.read)
        self._latest = Latest(self._make)

    def routes(self) -> Starlette:
        routes = [
            Route("/metrics", self._metrics),
            Route("/healthz", self._health),
            Route("/readyz", self._ready),
            Route("/", self._status),
        ]
        if self._reports is not None:
            routes += [Route("/reports", self._report), Route("/reports/{path:path}", self._report)]
        app = Starlette(routes=routes)
        app.router.redirect_slashes = False
        return app

    def _make(self) -> Shown:
        """One at a time, see `Latest`."""
        return Shown(*self._exposition.render())

    async def _metrics(self, _: Request) -> Response:
        shown = await self._latest.get()
        return Response(shown.metrics, headers={"content-type": _METRICS_TYPE})

    async def _health(self, _: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def _ready(self, _: Request) -> Response:
        shown = await self._latest.get()
        fault = shown.reading.fault
        if fault is None and not shown.stale:
            return PlainTextResponse("ready\n")
        return PlainTextResponse(f"not ready: {fault.value if fault else 'stale'}\n", 503)

    async def _status(self, _: Request) -> Response:
        shown = await self._latest.get()
        page = status_page(
            shown.reading,
            stale=shown.stale,
            reports=self._reports is not None,
            schedule=None if self._schedule is None else self._schedule(),
        )
        return Response(page, headers={"content-type": _HTML, "content-security-policy": POLICY_OF_STATUS})

    async def _report(self, request: Request) -> Response:
        assert self._reports is not None
        path = request.path_params.get("path", "")
        found = await asyncio.to_thread(self._reports.read, path or "index.html")
        if found is not None:
            headers = {"content-type": found.media_type, "content-security-policy": _POLICY_OF_REPORTS}
            return Response(found.body, headers=headers)
        if path:
            return PlainTextResponse("not found\n", 404)
        page = reports_page(await asyncio.to_thread(self._reports.names))
        return Response(page, headers={"content-type": _HTML, "content-security-policy": POLICY_OF_STATUS})
