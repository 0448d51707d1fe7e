"""What a live check may not do, held by the interpreter: no Telegram, no other host, no file outside its directory."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final
from unittest import mock

from kexpr.authority.weekly import WeeklyAuthority

__all__ = ["PROVIDER_HOST", "Forbidden", "isolated"]

PROVIDER_HOST: Final = "api.openai.com"
_TRANSPORTS: Final = frozenset({"telegram", "aiogram", "telethon", "pyrogram", "telebot", "gateway"})
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_BOT_CALLS: Final = ("__init__", "send_message", "edit_message_text")


class Forbidden(Exception):
    """Something that a live check must not reach; `code` says what, and nothing more."""

    def __init__(self, code: str) -> None:
        self.code = code
        super().__init__(code)


class _Guard:
    """An audit hook cannot be taken away again, so there is one, and it asks what is on."""

    def __init__(self) -> None:
        self.installed = False
        self.directory: Path | None = None
        self.seen: list[str] = []

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.directory is None:
            return
        code = _refusal(event, arguments, self.directory)
        if code is not None:
            self.seen.append(code)
            raise Forbidden(code)


def _refusal(event: str, arguments: tuple[Any, ...], directory: Path) -> str | None:
    if event == "import" and arguments[0].partition(".")[0] in _TRANSPORTS:
        return "transport_import"
    if event == "socket.getaddrinfo" and arguments[0] not in (PROVIDER_HOST, PROVIDER_HOST.encode()):
        return "other_host"
    if event == "open" and _writes_outside(arguments, directory):
        return "write_outside"
    return None


def _writes_outside(arguments: tuple[Any, ...], directory: Path) -> bool:
    """A relative name is one of a directory that was opened, and so below the temporary one."""
    path, _, flags = arguments
    if not isinstance(path, str) or not flags & _WRITING or not path.startswith("/"):
        return False
    return not (Path(path).is_relative_to(directory) or "/__pycache__/" in path or path == os.devnull)


_GUARD: Final = _Guard()


@contextmanager
def isolated(directory: Path) -> Iterator[list[str]]:
    """While it is on, what is forbidden raises; the list says what was tried, also where the raise was swallowed."""
    if not _GUARD.installed:
        sys.addaudithook(_GUARD)
        _GUARD.installed = True
    with ExitStack() as stack:
        bot = getattr(sys.modules.get("telegram"), "Bot", None)
        for name in _BOT_CALLS if bot else ():
            stack.enter_context(mock.patch.object(bot, name, _forbid("transport_call")))
        stack.enter_context(mock.patch.object(WeeklyAuthority, "mark_customer_task_sending", _forbid("mark_sending")))
        stack.enter_context(mock.patch.object(tempfile, "tempdir", str(directory)))
        hidden = [name for name in sys.modules if name.partition(".")[0] in _TRANSPORTS]
        stack.enter_context(mock.patch.dict(sys.modules))
        for name in hidden:
            del sys.modules[name]
        _GUARD.seen, _GUARD.directory = [], directory
        try:
            yield _GUARD.seen
        finally:
            _GUARD.directory = None


def _forbid(code: str) -> Any:
    def refuse(*_: object, **__: object) -> None:
        _GUARD.seen.append(code)
        raise Forbidden(code)

    return refuse
