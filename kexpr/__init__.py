"""Short connective Korean from a language model, inside messages whose facts stay code's."""

from typing import Final

__all__ = ["__version__"]

__version__: Final = "0.1.0"
