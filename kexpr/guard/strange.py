"""Words that the lexicon does not know: what they may be, and whether a text may hold one.

named       of the refused vocabulary, also when its spelling is drawn out or follows the sound
address     a name or a form of address by its ending
hidden      refused once it is read together with a neighbour, or from its second part on
asserting   by its ending it says what the reader does or what has happened: never let pass
otherwise   one a text is let pass: the guard is open in what is talked about, not in what is said of it
"""

import re
from functools import lru_cache
from typing import Final

from kexpr.codes import Reason
from kexpr.guard.lexicon import Kind, denied_category, lexicon, respelled_category
from kexpr.guard.plainer import drawn_in, plainer

__all__ = ["hidden", "named", "tolerated"]

_CACHED_WORDS: Final = 4096
_LENGTHS: Final = range(2, 7)
"""Syllables of a word that is let pass: a shorter one says nothing alone, a longer one is a sentence without spaces."""
_ADDRESS: Final = re.compile("[가-힣]+(?:님|씨)(?:께|께서|들|이|은|도|의|을|과|이랑|하고|에게)?$")
_ASSERTS: Final = re.compile(
    "[가-힣](?:셨|셔|시는|시던|시고|시면|시니|시기|시도록|시지|시겠|세요|십니|십시|실|신)[가-힣]{0,4}$"
    "|[가-힣](?:았|었|였|했|됐)[가-힣]{1,4}$"
)


@lru_cache(_CACHED_WORDS)
def named(word: str) -> tuple[Reason, str]:
    """(reason, layer) of an unknown word: its category if the refused vocabulary has it, a respelling, or neither."""
    category = denied_category(word)
    if category is not None:
        return Reason(f"guard.{category}"), "lexicon"
    if _ADDRESS.match(word):
        return Reason.GUARD_IDENTITY, "lexicon"
    if _respelled(word):
        return Reason.FORM_RESPELLING, "unicode"
    return Reason.GUARD_VOCABULARY, "vocabulary"


def _respelled(word: str) -> bool:
    """Whether `word` is another spelling of one that is known.

    Syllables outside KS X 1001 are almost only respellings; the codec writes the others in two bytes.
    """
    drawn = drawn_in(word)
    if len(word.encode("euc_kr", "replace")) != 2 * len(word) or respelled_category(drawn) is not None:
        return True
    if drawn != word and (lexicon().read(drawn).kind != Kind.UNKNOWN or named(drawn)[0] is not Reason.GUARD_VOCABULARY):
        return True
    return any(denied_category(spelling) is not None for spelling in plainer(word))


@lru_cache(_CACHED_WORDS)
def tolerated(word: str) -> bool:
    """Whether a text may hold this unknown word: nothing refused is in it, and it asserts nothing."""
    return (
        len(word) in _LENGTHS
        and named(word)[0] is Reason.GUARD_VOCABULARY
        and not _ASSERTS.search(word)
        and not any(
            lexicon().read(word[:end]).kind != Kind.UNKNOWN and denied_category(word[end:]) is not None
            for end in range(1, len(word) - 1)
        )
    )


@lru_cache(_CACHED_WORDS)
def hidden(before: str, after: str) -> bool:
    """Whether two neighbours, one of them unknown, are one known or refused word with a space in it."""
    together = before + after
    return lexicon().read(together).kind != Kind.UNKNOWN or named(together)[0] is not Reason.GUARD_VOCABULARY
