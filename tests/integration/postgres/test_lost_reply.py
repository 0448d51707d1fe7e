"""A COMMIT whose reply never came: nobody knows, it is never sent again, and the next handle finds what is there."""

import socket
import threading
from pathlib import Path
from uuid import uuid4

import pytest

from kexpr.errors import LedgerFailed, StoreFault
from kexpr.ledger.postgres import PostgresLedger
from kexpr.ledger.protocol import Row
from tests.support.postgres import Cluster

_COMMIT = b"COMMIT\0"


class _Proxy:
    """Passes connections on to the server's socket, and cuts one at its COMMIT: before or after the server has it."""

    def __init__(self, directory: Path, server: Path, *, forwards: bool) -> None:
        self._server = str(server)
        self._forwards = forwards
        self.commits = 0
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(directory / ".s.PGSQL.5432"))
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with client, socket.socket(socket.AF_UNIX) as server:
                server.connect(self._server)
                replies = threading.Thread(target=_copy, args=(server, client))
                self._requests(client, server, replies)
                server.shutdown(socket.SHUT_RDWR)
                replies.join()

    def _requests(self, client: socket.socket, server: socket.socket, replies: threading.Thread) -> None:
        replies.start()
        while data := client.recv(65_536):
            if _COMMIT in data:
                self.commits += 1
                client.shutdown(socket.SHUT_RDWR)
                if self._forwards:
                    server.sendall(data)
                    server.shutdown(socket.SHUT_WR)
                    replies.join()
                return
            server.sendall(data)


def _copy(source: socket.socket, sink: socket.socket) -> None:
    """To the end of `source`, also when nobody listens any more."""
    while data := source.recv(65_536):
        try:
            sink.sendall(data)
        except OSError:
            continue


@pytest.mark.parametrize("forwards", [True, False])
def test_a_lost_reply_is_indeterminate_and_never_sent_again(postgres: Cluster, tmp_path: Path, forwards: bool) -> None:
    name, rows = uuid4().hex, list[Row]()
    proxy = _Proxy(tmp_path, postgres.directory / ".s.PGSQL.5432", forwards=forwards)
    conninfo = postgres.conninfo.replace(str(postgres.directory), str(tmp_path))
    try:
        ledger = PostgresLedger.open(conninfo, name, projection=lambda row: None)
        with pytest.raises(LedgerFailed) as raised, ledger.transaction() as transaction:
            transaction.append({"n": 1})
        assert raised.value.code is StoreFault.COMMIT_UNKNOWN
        with pytest.raises(LedgerFailed) as raised, ledger.transaction():
            pass
        assert raised.value.code is StoreFault.POISONED
        ledger.close()
    finally:
        proxy.close()
    assert proxy.commits == 1
    again = PostgresLedger.open(postgres.conninfo, name, projection=rows.append)
    with again.transaction() as transaction:
        assert [row.record for row in rows] == ([{"n": 1}] if forwards else [])
    again.close()
