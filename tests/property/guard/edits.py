"""Edits that change nothing a slot says: an accepted text stays accepted (guard-policy, "May")."""

import re
from collections.abc import Callable, Iterator
from typing import Final

__all__ = ["EDITS"]

Edit = Callable[[str], Iterator[str]]

_TOKEN: Final = "⟦p⟧"
_SWAPS: Final = (
    *(
        ("주세요", "주십시오"),
        ("주십시오", "주세요"),
        ("주세요", "주셔요"),
        ("주세요", "주시겠어요"),
        ("주세요", "주시면 좋겠어요"),
    ),
    *(
        ("주시면 좋겠어요", "주세요"),
        ("주세요", "주시지요"),
        ("주시지요", "주세요"),
        ("보세요", "보십시오"),
        ("보세요", "보시지요"),
    ),
    *(
        ("볼게요", "보겠습니다"),
        ("보겠습니다", "볼게요"),
        ("볼게요", "볼까요"),
        ("볼까요", "볼게요"),
        ("볼게요", "보려고 합니다"),
    ),
    *(("볼게요", "봅니다"), ("봅니다", "볼게요"), ("봅니다", "봐요"), ("봐요", "봅니다"), ("보려 해요", "보려 합니다")),
    *(
        ("드려요", "드립니다"),
        ("드립니다", "드려요"),
        ("드려요", "드릴게요"),
        ("드릴게요", "드리겠습니다"),
        ("드릴게요", "드려요"),
    ),
    *(
        ("드리겠습니다", "드릴게요"),
        ("드릴게요", "드릴까요"),
        ("할게요", "하겠습니다"),
        ("하겠습니다", "할게요"),
        ("갈게요", "가겠습니다"),
    ),
    *(
        ("둘게요", "두겠습니다"),
        ("해요", "합니다"),
        ("합니다", "해요"),
        ("가요", "갑니다"),
        ("갑니다", "가요"),
        ("이에요", "입니다"),
    ),
    *(
        ("있어요", "있습니다"),
        ("있습니다", "있어요"),
        ("있어요", "있지요"),
        ("있어요", "있네요"),
        ("있습니다", "있지요"),
    ),
    *(
        ("괜찮아요", "괜찮습니다"),
        ("괜찮습니다", "괜찮아요"),
        ("괜찮아요", "괜찮지요"),
        ("좋아요", "좋습니다"),
        ("좋습니다", "좋아요"),
    ),
    *(
        ("었어요", "었습니다"),
        ("었습니다", "었어요"),
        ("았어요", "았습니다"),
        ("았습니다", "았어요"),
        ("겠어요", "겠습니다"),
    ),
    *(
        ("겠습니다", "겠어요"),
        ("고마워요", "고맙습니다"),
        ("고맙습니다", "고마워요"),
        ("반가워요", "반갑습니다"),
        ("반갑습니다", "반가워요"),
    ),
    *(
        ("감사해요", "감사합니다"),
        ("감사합니다", "감사해요"),
        ("바라요", "바랍니다"),
        ("바랍니다", "바라요"),
        ("보내세요", "보내십시오"),
    ),
    *(
        ("보내세요", "보내시길 바라요"),
        ("보내세요", "보내시기 바랍니다"),
        ("되세요", "되십시오"),
        ("되세요", "되시길 바랍니다"),
    ),
    *(
        ("적어요", "적습니다"),
        ("적습니다", "적어요"),
        ("읽어요", "읽습니다"),
        ("나눠요", "나눕니다"),
        ("나눕니다", "나눠요"),
    ),
    *(
        ("펼쳐요", "펼칩니다"),
        ("이어져요", "이어집니다"),
        ("이어집니다", "이어져요"),
        ("이어집니다", "이어지지요"),
        ("기뻐요", "기쁩니다"),
    ),
)
"""A sentence's end and another for it, both said of the same doer."""
_ASKING: Final = ("볼까요", "드릴까요", "주시겠어요")
_CLOSED: Final = re.compile(r"[.!?…]+(?= |$)")
_CONNECTIVE: Final = re.compile("(?:그럼|그리고|먼저|이어서|이제|[가-힣](?:보면|드리면|면서|해서|어서|아서))(?= )")
_CONNECTED: Final = re.compile("(?<=[가-힣])(?:면|고|서|며|럼|저), ")
_SENTENCES: Final = re.compile(r"([^⟦⟧]+[.!?…]) ⟦p⟧ ([^⟦⟧]+[.!?…])")
_LED: Final = re.compile("그럼|자[, ]|네[, ]|이제|그리고|그래서|나아가|아울러|참고로|안녕|⟦|['\"(]")


def ended(text: str) -> Iterator[str]:
    """The end of each sentence swapped for another of the same meaning."""
    for stop in _CLOSED.finditer(text):
        for old, new in _SWAPS:
            if text.endswith(old, 0, stop.start()) and not (
                old == "해요" and text.endswith("감사해요", 0, stop.start())
            ):
                mark = "?" if new in _ASKING else "." if old in _ASKING else stop[0]
                yield text[: stop.start() - len(old)] + new + mark + text[stop.end() :]
    for found in re.finditer("([가-힣])입니다(?=[.!])", text):
        copula = "이에요" if (ord(found[1]) - ord("가")) % 28 else "예요"
        yield text[: found.start() + 1] + copula + text[found.end() :]
        if not text.endswith("까지", 0, found.start() + 1):
            yield text[: found.start() + 1] + "이지요" + text[found.end() :]


def stopped(text: str) -> Iterator[str]:
    """Another final mark, one more, or none at the very end."""
    for stop in re.finditer(r"(?<=[가-힣])\.(?= |$)", text):
        for mark in ("!", "…", "...", "!!"):
            yield text[: stop.start()] + mark + text[stop.end() :]
    if text[-1] in ".!":
        yield text.rstrip(".!")
    if text[-1] in "요다오":
        yield text + "."


def reordered(text: str) -> Iterator[str]:
    """The sentence before the placeholder put behind it, and the other way round."""
    both = _SENTENCES.fullmatch(text)
    if both is not None:
        yield f"{both[2]} {_TOKEN} {both[1]}"
        yield f"{both[1]} {both[2]} {_TOKEN}"
        yield f"{_TOKEN} {both[1]} {both[2]}"
    elif text.startswith(f"{_TOKEN} ") and text[-1] in ".!?…":
        yield f"{text.removeprefix(f'{_TOKEN} ')} {_TOKEN}"
    elif text.endswith(f" {_TOKEN}") and text[-len(_TOKEN) - 2] in ".!?…":
        yield f"{_TOKEN} {text.removesuffix(f' {_TOKEN}')}"


def led(text: str) -> Iterator[str]:
    """A word that opens a talk put first."""
    if not _LED.match(text):
        for opening in ("그럼, ", "자, ", "네, ", "그럼 ", "이제 ", "그리고 "):
            yield opening + text


def connected(text: str) -> Iterator[str]:
    """The comma after a connective put in or left out."""
    for found in _CONNECTIVE.finditer(text):
        yield text[: found.end()] + "," + text[found.end() :]
    for found in _CONNECTED.finditer(text):
        yield text[: found.end() - 2] + text[found.end() - 1 :]


EDITS: Final[dict[str, Edit]] = {
    "ending": ended,
    "final mark": stopped,
    "order": reordered,
    "opening": led,
    "comma": connected,
}
