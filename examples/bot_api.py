"""A Bot API server on loopback that keeps Telegram's rules for texts and buttons, and what it was sent.

The rules that matter here: a text over 4,096 UTF-16 code units is refused, never cut; an edit replaces the buttons by
those it brings, and takes them away when it brings none; an edit that changes nothing is refused. Updates can be queued
for a polling bot.
"""

import json
import queue
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self
from urllib.parse import parse_qsl

__all__ = ["TOKEN", "BotApi", "Received", "Shown"]

TOKEN: Final = "1:loopback"
"""Not a secret: this server takes any token."""

_LIMIT: Final = 4096
_POLL_S: Final = 0.05
_BOT: Final = {"id": 1, "is_bot": True, "first_name": "coach", "username": "loopback_bot"}
_DATE: Final = 1_700_000_000


@dataclass(frozen=True, slots=True)
class Received:
    """One call as it came: the method, the body's bytes and the fields in it."""

    method: str
    body: bytes = field(repr=False)
    fields: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Shown:
    """What a chat shows under a message id."""

    text: str = field(repr=False)
    buttons: Any = field(repr=False)


class _Refused(Exception):
    """The server's answer 400; the argument is Telegram's description."""


class BotApi:
    """A context manager; `base_url` is what a bot is given."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._updates: queue.Queue[Mapping[str, Any]] = queue.Queue()
        self._next_id = 1000
        self._received: list[Received] = []
        self._messages: dict[tuple[str, str], Shown] = {}

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join(5)
        self._server.server_close()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/bot"

    @property
    def visible(self) -> list[Received]:
        """The calls that write text into a chat, in order; refused ones count."""
        with self._lock:
            return [call for call in self._received if call.method in ("sendMessage", "editMessageText")]

    def shown(self, chat_id: int, message_id: int) -> Shown:
        with self._lock:
            return self._messages[str(chat_id), str(message_id)]

    def place(self, chat_id: int, message_id: int, text: str, buttons: object = None) -> None:
        """Put a message of the bot into a chat, as if it had been sent before."""
        with self._lock:
            self._messages[str(chat_id), str(message_id)] = Shown(text, buttons)

    def tap(self, chat_id: int, message_id: int, data: str) -> dict[str, Any]:
        """The update of a user who taps the button `data` under a message that is there."""
        query = {
            "id": "1",
            "from": _user(chat_id),
            "chat_instance": "1",
            "data": data,
            "message": self._message(chat_id, message_id),
        }
        return {"update_id": self._number(), "callback_query": query}

    def note(self, chat_id: int, text: str) -> dict[str, Any]:
        """The update of a user who types `text`."""
        message_id = self._number()
        chat = {"id": chat_id, "type": "private"}
        message = {"message_id": message_id, "date": _DATE, "chat": chat, "from": _user(chat_id), "text": text}
        return {"update_id": message_id, "message": message}

    def queue(self, update: Mapping[str, Any]) -> None:
        """Hand an update to the bot's next poll."""
        self._updates.put(update)

    def answer(self, method: str, body: bytes) -> object:
        """The result of one call."""
        fields = dict(parse_qsl(body.decode(), keep_blank_values=True))
        with self._lock:
            self._received.append(Received(method, body, fields))
        answerer = _ANSWERS.get(method)
        return answerer(self, fields) if answerer else True

    def updates(self, _: Mapping[str, str]) -> object:
        try:
            return [self._updates.get(timeout=_POLL_S)]
        except queue.Empty:
            return []

    def send(self, fields: Mapping[str, str]) -> object:
        return self._write(fields, self._number())

    def edit(self, fields: Mapping[str, str]) -> object:
        chat_id, message_id = fields["chat_id"], fields["message_id"]
        with self._lock:
            before = self._messages.get((chat_id, message_id))
        if before is None:
            raise _Refused("Bad Request: message to edit not found")
        if before == Shown(fields["text"], _buttons(fields)):
            raise _Refused("Bad Request: message is not modified")
        return self._write(fields, int(message_id))

    def _write(self, fields: Mapping[str, str], message_id: int) -> object:
        text = fields["text"]
        if len(text.encode("utf-16-le")) // 2 > _LIMIT:
            raise _Refused("Bad Request: message is too long")
        self.place(int(fields["chat_id"]), message_id, text, _buttons(fields))
        return self._message(int(fields["chat_id"]), message_id)

    def _message(self, chat_id: int, message_id: int) -> dict[str, Any]:
        shown = self.shown(chat_id, message_id)
        chat = {"id": chat_id, "type": "private"}
        message = {"message_id": message_id, "date": _DATE, "chat": chat, "from": _BOT, "text": shown.text}
        return message if shown.buttons is None else {**message, "reply_markup": shown.buttons}

    def _number(self) -> int:
        with self._lock:
            self._next_id += 1
            return self._next_id


_ANSWERS: Final[Mapping[str, Callable[[BotApi, Mapping[str, str]], object]]] = {
    "getMe": lambda _api, _fields: _BOT,
    "getUpdates": BotApi.updates,
    "sendMessage": BotApi.send,
    "editMessageText": BotApi.edit,
}
"""Every other method is answered `true`."""


def _user(chat_id: int) -> dict[str, Any]:
    return {"id": chat_id, "is_bot": False, "first_name": "customer"}


def _buttons(fields: Mapping[str, str]) -> Any:
    return json.loads(fields["reply_markup"]) if "reply_markup" in fields else None


def _handler(api: BotApi) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            try:
                status, answer = 200, {"ok": True, "result": api.answer(self.path.rpartition("/")[2], body)}
            except _Refused as refused:
                status, answer = 400, {"ok": False, "error_code": 400, "description": str(refused)}
            encoded = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(encoded)))
            self.end_headers()
            with suppress(ConnectionError):  # a bot that stops leaves its poll behind
                self.wfile.write(encoded)

        def log_message(self, *_: object) -> None:
            """Requests are content."""

    return Handler
