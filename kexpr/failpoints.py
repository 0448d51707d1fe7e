"""Named points where a test may stop the world.

`reach(name)` is called right after each durable or visible step. Without a hook it does nothing. Tests install a hook
that kills the process or raises; no configuration and no environment variable can.
"""

from collections.abc import Callable

__all__ = ["install", "reach"]

_hook: Callable[[str], None] | None = None


def install(hook: Callable[[str], None] | None) -> None:
    """Set or clear the hook. For tests only."""
    global _hook  # noqa: PLW0603 - one hook a process is the point
    _hook = hook


def reach(name: str) -> None:
    if _hook is not None:
        _hook(name)
