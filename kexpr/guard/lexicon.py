"""The lexicon: what the words of a slot may be, loaded once from `data/`, digested, and asked word by word.

Theory of operation. `discourse.txt` holds the stems of discourse, `context.txt` the words that are discourse only in
company, `denied.txt` the vocabulary of the refused categories. All become one mapping from decomposed base to readings
(`morphology`). A word is read by its longest base whose rest the base's slots allow. A word without such a reading is
unknown, and then the refused vocabulary names it: a refused stem of two syllables or more takes anything after it, so
that compounds are found, a shorter one only particles or endings, but nearly all of these (`wide`). Readings are
cached, since discourse repeats itself.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final, NamedTuple

from kexpr.codes import Reason
from kexpr.guard.data_files import DATA_FILES, data_lines, data_text, sections
from kexpr.guard.morphology import (
    ADVERB,
    BECOMING,
    DETERMINER,
    HONORIFIC,
    PAST,
    PERSONAL,
    WHOLE,
    closed_by,
    decompose,
    noun_slot,
    sound,
    verb_bases,
)
from kexpr.guard.wide import ENDINGS, LINKS, WIDE

__all__ = [
    "LEXICON_VERSION",
    "PERSON",
    "Kind",
    "Lexicon",
    "Phrases",
    "Reading",
    "denied_category",
    "is_denied_word",
    "lexicon",
    "lexicon_digest",
    "respelled_category",
]

LEXICON_VERSION: Final = 2
_PREFIX: Final = "X"
"""Slot of a refused stem: anything may follow it, from its next syllable on."""
_LAST_LEAD: Final = "\u115f"
_SAI_SIOT: Final = "\u11ba"
"""The ㅅ that joins two nouns: 어제 + 밤 is 어젯밤."""
_CACHED_WORDS: Final = 4096
_LONGEST_WORD: Final = 24
"""Syllables; a longer word has no reading (and costs no time)."""


class Kind:
    """What a word is: small integers, compared for every word of every text."""

    ALLOWED: Final = 0
    IMAGE: Final = 1
    CONTEXT: Final = 2
    DENIED: Final = 3
    UNKNOWN: Final = 4


class Reading(NamedTuple):
    """How one word reads. `bears`: the form bits its verb may carry; `form`: those it carries."""

    kind: int
    tag: str
    bears: int
    form: int
    infinitive: bool
    auxiliary: tuple[int, bool] | None
    """(form bits, ends in an infinitive) of the word read as an auxiliary of the verb before it."""
    connects: bool
    """A sentence placeholder may follow without punctuation."""


class _Entry(NamedTuple):
    slots: str
    kind: int
    tag: str
    bears: int


_Entries = dict[str, list[_Entry]]
_ANY: Final = HONORIFIC | PAST
_SHORTEST_SOUND: Final = 4


class LazyPattern:
    """A pattern compiled when first used: most never are in one short process."""

    __slots__ = ("_compiled", "_pattern")

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._compiled: re.Pattern[str] | None = None

    @property
    def compiled(self) -> re.Pattern[str]:
        if self._compiled is None:
            self._compiled = re.compile(self._pattern)
        return self._compiled


class Phrases(LazyPattern):
    """Refused phrases: one pattern, a group each."""

    __slots__ = ("_reasons",)

    def __init__(self, phrases: list[tuple[Reason, str]]) -> None:
        self._reasons = tuple(reason for reason, _ in phrases)
        super().__init__("|".join(f"({pattern})" for _, pattern in phrases))

    def reason(self, found: re.Match[str]) -> Reason:
        """Why the phrase that the pattern found is refused."""
        return self._reasons[(found.lastindex or 1) - 1]


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Everything the data files say."""

    entries: Mapping[str, list[_Entry]]
    auxiliaries: Mapping[str, str]
    contexts: Mapping[str, LazyPattern]
    phrases: Mapping[str, Phrases]
    """By how they begin: a syllable, or two characters (then with those that begin with the syllable alone)."""
    open_phrases: Phrases
    read: Callable[[str], Reading]

    def warm(self) -> None:
        """Compile every pattern."""
        for pattern in (*self.contexts.values(), *self.phrases.values(), self.open_phrases):
            pattern.compiled  # noqa: B018 - compiles


def _read(entries: Mapping[str, list[_Entry]], auxiliaries: Mapping[str, str], word: str) -> Reading:
    jamo = decompose(word) if len(word) <= _LONGEST_WORD else ""
    auxiliary = _auxiliary(auxiliaries, jamo)
    for end in range(len(jamo), 0, -1):
        here = entries.get(jamo[:end])
        if here is None:
            continue
        readings = [
            Reading(entry.kind, entry.tag, entry.bears, *closed, auxiliary, _connects(entry.slots, word))
            for entry in here
            if (closed := _close(auxiliaries, entry.slots, jamo[end:])) is not None
        ]
        if readings:
            return min((_judged(reading) for reading in readings), key=lambda reading: (reading.kind, -reading.bears))
    return Reading(Kind.UNKNOWN, "", _ANY, 0, False, auxiliary, bool(_CONNECTIVE.search(word)))


_CONNECTIVE: Final = re.compile(
    "(?:면|면은|면서|고|고요|며|니|니까|서|는데|은데|인데|듯|듯이|도록|고자|려고|게|아|어|해|가|와|봐|라|진데|한데|운데|큼)$"
)
_ADVERBIAL: Final = re.compile("(?:으?로|로는|처럼|같이|라면|이면|이고|고|며|이자)$")


def _connects(slots: str, word: str) -> bool:
    if slots in (ADVERB, WHOLE):
        return True
    pattern = _ADVERBIAL if slots in "VCL" else _CONNECTIVE
    return slots != DETERMINER and pattern.search(word) is not None


def _judged(reading: Reading) -> Reading:
    """Refused if the form says what its verb may not: the reader doing something, or something done."""
    excess = reading.form & ~reading.bears
    if not excess or reading.kind >= Kind.DENIED:
        return reading
    return reading._replace(kind=Kind.DENIED, tag="decision" if excess & HONORIFIC else "evidential")


def _close(auxiliaries: Mapping[str, str], slots: str, rest: str) -> tuple[int, bool] | None:
    """(form bits, ends in an infinitive) if `rest` is an ending that `slots` allow."""
    for slot in slots:
        if slot == _PREFIX:
            if _ends_syllable(rest):
                return 0, False
            continue
        if rest in ENDINGS[slot]:
            return 0, slot == "A" and not rest
        for between, following, bits in LINKS.get(slot, ()):
            if rest.startswith(between):
                found = _close(auxiliaries, following, rest[len(between) :])
                if found is not None:
                    return found[0] | bits, found[1]
        if slot == "A":
            found = _auxiliary(auxiliaries, rest)
            if found is not None:
                return found
    return None


def _after_respelling(rest: str) -> bool:
    """Whether `rest`, as it sounds, is what may follow a noun: a particle, or the verbs it makes."""
    return rest in _PARTICLE_SOUNDS or rest.startswith(_SUFFIX_SOUNDS)


def _ends_syllable(rest: str) -> bool:
    """Whether what stands before `rest` is whole syllables, but for the ㅅ of a compound."""
    return rest[:1] <= _LAST_LEAD or rest[0] == _SAI_SIOT


def _auxiliary(auxiliaries: Mapping[str, str], jamo: str) -> tuple[int, bool] | None:
    for end in range(min(len(jamo), 8), 1, -1):
        slots = auxiliaries.get(jamo[:end])
        if slots is not None:
            found = _close(auxiliaries, slots, jamo[end:])
            if found is not None:
                return found
    return None


# Loading.


def _add(entries: _Entries, base: str, entry: _Entry) -> None:
    entries.setdefault(base, []).append(entry)


def _add_noun(entries: _Entries, noun: str, kind: int, tag: str) -> None:
    jamo = decompose(noun)
    _add(entries, jamo, _Entry(noun_slot(jamo), kind, tag, _ANY))


def _add_verb(
    entries: _Entries, spelled: str, kind: int, tag: str, bears: int, only: Mapping[str, str] | None = None
) -> None:
    """`only` renames the slots that remain; the others, with their endings, are dropped."""
    stem, _, irregular = spelled.partition(":")
    for base, slots in verb_bases(stem, irregular):
        kept = slots if only is None else "".join(only[slot] for slot in slots if slot in only)
        _add(entries, base, _Entry(kept, kind, tag, bears))


def _add_becoming(entries: _Entries, spelled: str) -> None:
    """느긋해지다: as a wish or a description (느긋해지기를, 느긋해지는), never as a statement."""
    stem, _, irregular = spelled.partition(":")
    for base, slots in verb_bases(stem, irregular):
        if slots == "A":
            _add(entries, base + decompose("지"), _Entry(BECOMING, Kind.ALLOWED, "", 0))


_DESCRIBING: Final = {"P": "p", "E": "e", "A": "a"}
"""The slots of an adjective that only describes: no ending that closes a sentence."""
_PICTURED: Final = {"P": "P", "N": "N", "E": "E", "A": "A", "B": "", "M": ""}
"""The slots of an image's verb: a condition (꽃이 피면) would name a time."""


PERSON: Final = "person"
_NOUN_SECTIONS: Final = (
    ("noun", Kind.ALLOWED, ""),
    ("noun.time", Kind.ALLOWED, ""),
    ("noun.scene", Kind.IMAGE, ""),
    ("noun.person", Kind.IMAGE, PERSON),
)


def _load_discourse(entries: _Entries, auxiliaries: dict[str, str]) -> None:  # noqa: PLR0912 - a section a loop
    words = {name: " ".join(lines).split() for name, lines in sections("discourse.txt")}
    past, honorific = frozenset(words["past"]), frozenset(words["honorific"])

    def verb(spelled: str, bears: int) -> None:
        stem = spelled.partition(":")[0]
        bears |= (PAST if stem in past else 0) | (HONORIFIC if stem in honorific else 0)
        _add_verb(entries, spelled, Kind.ALLOWED, "", bears)

    for name, kind, tag in _NOUN_SECTIONS:
        for noun in words[name]:
            _add_noun(entries, noun, kind, tag)
    for name, slot in (("adverb", ADVERB), ("whole", WHOLE), ("determiner", DETERMINER)):
        for word in words[name]:
            _add(entries, decompose(word), _Entry(slot, Kind.ALLOWED, "", _ANY))
    for name, bears in (("verb.invite", HONORIFIC), ("verb.plain", 0), ("adjective.final", 0)):
        for spelled in words[name]:
            verb(spelled, bears)
    for spelled in words["adjective"] + words["adjective.final"]:
        _add_becoming(entries, spelled)
    for spelled in words["adjective"]:
        _add_verb(entries, spelled, Kind.ALLOWED, "", 0, _DESCRIBING)
    for spelled in words["verb.scene"]:
        _add_verb(entries, spelled, Kind.IMAGE, "", 0, _PICTURED)
    for name, bears in (("root.plain", 0), ("root.writer", PAST), ("root.invite", _ANY)):
        for root in words[name]:
            _add_noun(entries, root, Kind.ALLOWED, "")
            verb(f"{root}하", bears)
            verb(f"{root}드리", 0)
    for spelled in words["auxiliary"]:
        for base, slots in verb_bases(spelled):
            auxiliaries[base] = auxiliaries.get(base, "") + slots


def _load_context(entries: _Entries) -> dict[str, LazyPattern]:
    """Lines `class stem<TAB>pattern`; the tag of an entry is the line's own head."""
    add: Final = {
        "n": lambda stem, tag: _add_noun(entries, stem, Kind.CONTEXT, tag),
        "v": lambda stem, tag: _add_verb(entries, stem, Kind.CONTEXT, tag, _ANY),
        "a": lambda stem, tag: _add(entries, decompose(stem), _Entry(ADVERB, Kind.CONTEXT, tag, _ANY)),
        "w": lambda stem, tag: _add(entries, decompose(stem), _Entry(WHOLE, Kind.CONTEXT, tag, _ANY)),
    }
    patterns: dict[str, LazyPattern] = {}
    for line in data_lines("context.txt"):
        head, _, pattern = line.partition("\t")
        word_class, _, stem = head.partition(" ")
        add[word_class](stem, head)
        patterns[head] = LazyPattern(pattern)
    return patterns


def _denied_phrases() -> tuple[Mapping[str, Phrases], Phrases]:
    """The `category.phrase` sections: by how they begin, and those that may begin with any syllable."""
    phrases = [
        (_heads(line), (Reason(f"guard.{name.partition('.')[0]}"), _written_out(line)))
        for name, lines in sections("denied.txt")
        if name.endswith(".phrase")
        for line in lines
    ]
    begun = {
        head: Phrases([phrase for heads, phrase in phrases if heads & {head, head[0]}])
        for head in frozenset().union(*(heads for heads, _ in phrases))
    }
    return begun, Phrases([phrase for heads, phrase in phrases if not heads])


def _written_out(line: str) -> str:
    return _SHORTHAND.sub(lambda found: _MEANING[found[0]], line)


_MEANING: Final = {
    "~": "(?:[은는이가을를도에만]|으로|에서|까지|라도)?",
    "{ㄴ}": f"[{''.join(closed_by('ㄴ'))}]",
    "{ㄹ}": f"[{''.join(closed_by('ㄹ'))}]",
}
"""The shorthand of a phrase: an optional particle, and the syllables that end in a consonant."""
_SHORTHAND: Final = re.compile("~|{[ㄴㄹ]}")
_BEHIND: Final = re.compile(r"(?:\((?:\?<[=!][^()]*|\?:(?:\(\?<[=!][^()]*\)\|?)+)\))*")
_CHOICE: Final = re.compile(r"\(\?:([가-힣 ?|]+)\)(?!\?)")
_LITERAL: Final = re.compile("([가-힣](?:[가-힣 ](?![?~]))?)(?!\\?)")


def _heads(pattern: str) -> frozenset[str]:
    """How `pattern` can begin, after what it asks for behind it: a syllable or two characters; none if with any."""
    pattern = _BEHIND.sub("", pattern, count=1)
    choice = _CHOICE.match(pattern)
    found = [_LITERAL.match(part) for part in (choice[1].split("|") if choice else [pattern])]
    return frozenset(match[1] for match in found if match) if all(found) else frozenset()


@cache
def _denied_entries() -> _Entries:
    """The `category.noun`, `category.verb` and `category.word` sections; read when a word is first unknown."""
    entries: _Entries = {}
    for name, lines in sections("denied.txt"):
        category, _, part = name.partition(".")
        for spelled in " ".join(lines).split() if part in ("noun", "verb", "word") else ():
            stem, _, irregular = spelled.partition(":")
            jamo = decompose(stem)
            bases = verb_bases(stem, irregular) if part == "verb" else [(jamo, noun_slot(jamo) + PERSONAL)]
            for base, slots in bases:
                closing = WHOLE if part == "word" else _PREFIX + slots if len(stem) > 1 else slots.translate(WIDE)
                _add(entries, base, _Entry(closing, Kind.DENIED, category, _ANY))
    return entries


_PARTICLE_SOUNDS: Final = frozenset(sound(ending) for slot in "VCLK" for ending in ENDINGS[slot])
_SUFFIX_SOUNDS: Final = tuple(sound(decompose(suffix)) for suffix in "하 해 히 되 시키 받 님 적 중 스럽 롭".split())  # noqa: SIM905


@cache
def _denied_sounds() -> Mapping[str, str]:
    """How every refused stem of two syllables or more sounds -> its category."""
    sounds: dict[str, str] = {}
    for base, entries in _denied_entries().items():
        if entries[0].slots.startswith(_PREFIX):
            sounds.setdefault(sound(base), entries[0].tag)
    return sounds


@lru_cache(_CACHED_WORDS)
def denied_category(word: str) -> str | None:
    """The category of refused vocabulary that `word` begins with, if any."""
    entries = _denied_entries()
    jamo = decompose(word[:_LONGEST_WORD])
    for end in range(len(jamo), 0, -1):
        for entry in entries.get(jamo[:end], ()):
            if _close({}, entry.slots, jamo[end:]) is not None:
                return entry.tag
    return None


@lru_cache(_CACHED_WORDS)
def is_denied_word(word: str) -> bool:
    """Whether `word` is a refused stem with an ending of its own, and nothing more."""
    entries = _denied_entries()
    jamo = decompose(word[:_LONGEST_WORD])
    return any(
        _close({}, entry.slots.replace(_PREFIX, ""), jamo[end:]) is not None
        for end in range(len(jamo), 0, -1)
        for entry in entries.get(jamo[:end], ())
    )


@lru_cache(_CACHED_WORDS)
def respelled_category(word: str) -> str | None:
    """The category of refused vocabulary that `word` begins with when read aloud, however it is spelled."""
    sounds = _denied_sounds()
    heard = sound(decompose(word[:_LONGEST_WORD]))
    for end in range(len(heard), _SHORTEST_SOUND - 1, -1):
        category = sounds.get(heard[:end])
        if category is not None and _after_respelling(heard[end:]):
            return category
    return None


def lexicon_digest() -> str:
    """SHA-256 (hex) over the version and every data file: what a promotion candidate is pinned to."""
    digest = hashlib.sha256(f"{LEXICON_VERSION}\n".encode())
    for name in DATA_FILES:
        text = data_text(name)
        digest.update(f"{name}\0{len(text)}\0{text}".encode())
    return digest.hexdigest()


@cache
def lexicon() -> Lexicon:
    """The one lexicon of the process; loads on first use."""
    entries: _Entries = {}
    auxiliaries: dict[str, str] = {}
    _load_discourse(entries, auxiliaries)
    contexts = _load_context(entries)
    return Lexicon(
        entries,
        auxiliaries,
        contexts,
        *_denied_phrases(),
        lru_cache(_CACHED_WORDS)(lambda word: _read(entries, auxiliaries, word)),
    )
