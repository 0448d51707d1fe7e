"""The other ways to read a text: what it says if its spelling hides something.

a particle that stands alone is back at its noun      첫눈 이 내릴 때
a strange word is spelled plainly                     서라베, 바아앙식을
a strange word is two words run together              누가믿겠어요
a strange word and its neighbour are one word         그 렇지요
two neighbours are the halves of a refused word       주 말에
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from kexpr.guard.form import MARK
from kexpr.guard.lexicon import Kind, is_denied_word, lexicon
from kexpr.guard.plainer import plainer
from kexpr.guard.words import Spelled

__all__ = ["halved", "readings"]

_APART: Final = re.compile("(?:[·…,] ?| )(이|은|는|을|를|에|의|도)(?![가-힣])")
_NOUN_APART: Final = re.compile(f"(?<![가-힣])([가-힣]+){_APART.pattern}")
_ENDS: Final = ".,!?…:;"
_POINTING: Final = frozenset(["이", "그", "저"])


def readings(prose: str, written: Sequence[str], spelled: Sequence[Spelled]) -> Iterator[tuple[str, bool]]:
    """(prose read otherwise, whether every word that changed is known); `written` and `spelled` are its words."""
    if _APART.search(prose):
        glued = _NOUN_APART.sub(lambda found: _if_known(found[1] + found[2], found[0]), prose)
        if glued != prose:
            yield glued, True
    for index, (word, known) in enumerate(zip(written, spelled, strict=True)):
        core = known.strange
        if core is None:
            continue
        for spelling in plainer(core[0]):
            yield _with(written, index, index + 1, word.replace(core[0], spelling)), _known(spelling)
        for at in range(1, len(core[0])):
            if _known(core[0][:at]) and _known(core[0][at:]):
                yield _with(written, index, index + 1, f"{word[: core.start() + at]} {word[core.start() + at :]}"), True
        for at in (index, index + 1):
            if 0 < at < len(written) and MARK not in written[at - 1] + written[at]:
                yield _with(written, at - 1, at + 1, written[at - 1].rstrip(",") + written[at]), False


def halved(written: Sequence[str], spelled: Sequence[Spelled]) -> bool:
    """Whether two known neighbours, one of a single syllable, are together a refused word and nothing more."""
    cores = [known.hangul for known in spelled]
    return 1 in map(len, cores) and any(
        1 in (len(first), len(second)) and written[index][-1] not in _ENDS and _are_halves(first, second)
        for index, (first, second) in enumerate(pairwise(cores))
    )


def _are_halves(first: str, second: str) -> bool:
    return (
        bool(first and second)
        and first not in _POINTING
        and lexicon().read(second).auxiliary is None
        and is_denied_word(first + second)
    )


def _known(word: str) -> bool:
    return lexicon().read(word).kind != Kind.UNKNOWN


def _if_known(word: str, otherwise: str) -> str:
    return word if _known(word) else otherwise


def _with(written: Sequence[str], start: int, end: int, word: str) -> str:
    return " ".join((*written[:start], word, *written[end:]))
