"""File names of the reports in their directory."""

from typing import Final

__all__ = ["EXTENSIONS", "INDEX", "page_name", "stem_of"]

EXTENSIONS: Final = (".json", ".html", ".md", ".csv")
INDEX: Final = "index"


def stem_of(profile: str, surface: str) -> str:
    return f"{profile}-{surface}"


def page_name(profile: str, surface: str, extension: str = ".html") -> str:
    return stem_of(profile, surface) + extension
