"""Loggers that cannot be turned on again.

The SDK logs prompts, httpx URLs, httpcore headers. A level, a filter or `disabled` on their loggers is undone by the
next `logging.config.dictConfig` of the host; a logger object that is in no registry is not. Other users of these
packages in the same process lose their logs too: that is the price.
"""

import logging
import sys
from types import ModuleType
from typing import Final, cast

__all__ = ["InertLogger", "silence"]

_PACKAGES: Final = frozenset({"openai", "httpx", "httpcore", "httpx2", "httpcore2"})

_seen: dict[str, ModuleType] = {}
_last: tuple[int, str] = (0, "")
"""How many modules there were, and the newest of them, when `silence` looked last."""


class InertLogger(logging.Logger):
    """Says it is off, and drops what it is given all the same."""

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802 - the name is logging's
        return False

    def getEffectiveLevel(self) -> int:  # noqa: N802 - the name is logging's
        return logging.CRITICAL + 1

    def handle(self, record: logging.LogRecord) -> None:
        return

    def callHandlers(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name is logging's
        return


def silence() -> None:
    """Replace every module-level logger of the packages, in all modules loaded so far; skips those it has seen."""
    global _last  # noqa: PLW0603 - one process has one set of modules
    newest = (len(sys.modules), next(reversed(sys.modules)))
    if newest == _last:
        return
    _last = newest
    for name, module in tuple(sys.modules.items()):
        if name.partition(".")[0] in _PACKAGES and _seen.get(name) is not module:
            _silence_module(vars(module))
            _seen[name] = module


def _silence_module(namespace: dict[str, object]) -> None:
    for name, value in tuple(namespace.items()):
        # `type`, not `isinstance`: the SDK's lazy proxies answer that by building a client from the environment.
        kind = type(value)
        if issubclass(kind, logging.Logger) and kind is not InertLogger:
            namespace[name] = InertLogger(cast(logging.Logger, value).name)
