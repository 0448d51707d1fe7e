"""A running `kexpr-harness serve` and plain requests to it."""

import contextlib
import http.client
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Answer", "Service", "served"]


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass(frozen=True, slots=True)
class Service:
    process: subprocess.Popen[bytes]
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def ask(self, path: str, *, method: str = "GET", headers: Mapping[str, str] | None = None) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request(method, path, headers=dict(headers or {}))
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()


@contextlib.contextmanager
def served(state: Path, *arguments: str) -> Iterator[Service]:
    """Serves on a free port until the block ends; its output goes to `state`'s neighbour `service.log`."""
    command = [sys.executable, "-m", "harness.cli", "serve", "--state", str(state), "--port", "0", *arguments]
    log = state.with_name("service.log")
    environ = {name: value for name, value in os.environ.items() if name != "OPENAI_API_KEY"}
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.PIPE, env=environ)
    assert process.stderr is not None
    try:
        line = process.stderr.readline().decode()
        assert line.startswith("listening on http://127.0.0.1:"), line
        yield Service(process, int(line.rsplit(":", 1)[1]))
    finally:
        process.terminate()
        try:
            process.wait(5)
        finally:
            process.kill()
            with log.open("ab") as output:
                output.write(process.stderr.read())
            process.stderr.close()
