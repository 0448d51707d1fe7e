"""The guard: whether one slot's prose is discourse and nothing else (guard-policy)."""

from kexpr.guard.lexicon import LEXICON_VERSION, lexicon_digest
from kexpr.guard.verdict import Decision, judge, warm

__all__ = ["LEXICON_VERSION", "Decision", "judge", "lexicon_digest", "warm"]
