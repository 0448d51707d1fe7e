"""What else could decide on a text offline and without a large model, each given the refused vocabulary of the guard.

A contender is a name and a function that builds its `refuses(text)`; one whose library is not importable raises
ImportError and is skipped. Stems of one syllable are left out of whatever searches for substrings: 약, 몸 or 일 stand
inside too many harmless words.
"""

import importlib.util
import os
import re
import sys
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any, Final

from kexpr.guard.data_files import sections

__all__ = ["CONTENDERS", "Refuses", "refused_stems"]

Refuses = Callable[[str], bool]


@cache
def refused_stems(*parts: str) -> frozenset[str]:
    """The stems of the `category.part` sections of the refused vocabulary, without their mark of irregularity."""
    return frozenset(
        stem.partition(":")[0]
        for name, lines in sections("denied.txt")
        if name.partition(".")[2] in parts
        for stem in " ".join(lines).split()
    )


def _substrings() -> list[str]:
    return sorted(stem for stem in refused_stems("noun", "verb", "word") if len(stem) > 1)


def _alternation() -> str:
    return "|".join(map(re.escape, sorted(_substrings(), key=len, reverse=True)))


def word_list() -> Refuses:
    stems = _substrings()
    return lambda text: any(stem in text for stem in stems)


def alternation() -> Refuses:
    search = re.compile(_alternation()).search
    return lambda text: search(text) is not None


def better_profanity() -> Refuses:
    profanity = importlib.import_module("better_profanity").profanity
    profanity.load_censor_words()
    return lambda text: bool(profanity.contains_profanity(text))


def better_profanity_with_stems() -> Refuses:
    profanity = importlib.import_module("better_profanity").Profanity()
    profanity.load_censor_words(_substrings())
    return lambda text: bool(profanity.contains_profanity(text))


def alt_profanity_check() -> Refuses:
    predict = importlib.import_module("profanity_check").predict
    return lambda text: bool(predict([text])[0])


def guardrails() -> Refuses:
    os.environ["OTEL_SDK_DISABLED"] = "true"
    base = importlib.import_module("guardrails.validator_base")
    search = re.compile(_alternation()).search

    def validate(_self: Any, value: str, _metadata: Any) -> Any:
        return base.PassResult() if search(value) is None else base.FailResult(error_message="refused")

    stems = type("RefusedStems", (base.Validator,), {"validate": validate})
    validator = base.register_validator(name="bench/refused-stems", data_type="string")(stems)
    guard = importlib.import_module("guardrails").Guard().use(validator(on_fail="noop"))
    guard.configure(allow_metrics_collection=False)
    return lambda text: not guard.validate(text).validation_passed


def _bare(package: str) -> None:
    """Makes `package` importable without its `__init__`."""
    found = importlib.util.find_spec(package)
    if found is None or found.submodule_search_locations is None:
        raise ImportError(f"No module named {package!r}")
    bare = ModuleType(package)
    bare.__path__ = list(found.submodule_search_locations)
    sys.modules[package] = bare


def llm_guard() -> Refuses:
    """Three scanners without a model. The package's own `__init__` imports all, and torch for those that have one."""
    for package in ("llm_guard", "llm_guard.input_scanners"):
        _bare(package)
    importlib.import_module("llm_guard.util").configure_logger("CRITICAL")
    ban_substrings, regex, invisible_text = (
        importlib.import_module(f"llm_guard.input_scanners.{name}")
        for name in ("ban_substrings", "regex", "invisible_text")
    )
    scanners = [
        ban_substrings.BanSubstrings(_substrings()),
        regex.Regex([_alternation()], redact=False),
        invisible_text.InvisibleText(),
    ]
    return lambda text: not all(scanner.scan(text)[1] for scanner in scanners)


def kiwi() -> Refuses:
    """Nouns and adverbs by their form, verbs by their lemma. Endings are not looked up: 면 is noodles, too."""
    tokenize = importlib.import_module("kiwipiepy").Kiwi().tokenize
    words, verbs = refused_stems("noun", "word"), refused_stems("verb")

    def refuses(text: str) -> bool:
        before = ""
        for form, tag, *_ in tokenize(text):
            if tag.startswith(("V", "XSV", "XSA")):
                if form in verbs or before + form in verbs:
                    return True
            elif tag.startswith(("N", "XR", "MA", "MM", "IC")) and form in words:
                return True
            before = form if tag.startswith(("N", "XR")) else ""
        return False

    return refuses


CONTENDERS: Final[dict[str, Callable[[], Refuses]]] = {
    "list of stems, `stem in text`": word_list,
    "`re`, one alternation of the stems": alternation,
    "kiwipiepy, lemmas looked up": kiwi,
    "better-profanity, its own list": better_profanity,
    "better-profanity, the stems": better_profanity_with_stems,
    "alt-profanity-check": alt_profanity_check,
    "guardrails-ai, a regex validator": guardrails,
    "llm-guard, BanSubstrings + Regex + InvisibleText": llm_guard,
}
