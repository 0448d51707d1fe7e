"""What a report says in words, in English and in Korean. Codes are not words and stay as they are."""

import json
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from importlib.resources import files

__all__ = ["Language", "catalogue", "say"]


class Language(StrEnum):
    EN = "en"
    KO = "ko"


@cache
def catalogue(language: Language) -> Mapping[str, str]:
    """Key -> text. `{name}` is a place for a value; what stands between backticks is code."""
    text = files("harness.report").joinpath("catalogues", f"{language}.json").read_text("utf-8")
    loaded: dict[str, str] = json.loads(text)
    return loaded


def say(language: Language, key: str, **values: object) -> str:
    """The text of a key with its values put in; raises `KeyError` for an unknown key or a missing value."""
    return catalogue(language)[key].format_map(values)
