"""A second, naive reading of the anchor grammar, from contract section 8 alone: a character by character parser.

It shares no code with the library. `accepts` says whether a text is one of a grammar's with the given anchors.
"""

from collections.abc import Sequence

LEADS = ("정리하면, ", "확인 결과, ", "기록상, ")
JOINS = (" 또한 ", " 그리고 ")


class Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def take(self, literal: str) -> bool:
        if self.text.startswith(literal, self.at):
            self.at += len(literal)
            return True
        return False

    def take_one(self, literals: Sequence[str]) -> bool:
        return any(self.take(literal) for literal in literals)

    @property
    def is_done(self) -> bool:
        return self.at == len(self.text)


def accepts(grammar: str, anchors: Sequence[str], text: str) -> bool:
    reader = Reader(text)
    reader.take_one(LEADS)
    if grammar == "JUDGMENT":
        return (
            len(anchors) == 1
            and reader.take("현재 판단은 ")
            and reader.take(anchors[0])
            and reader.take("입니다.")
            and reader.is_done
        )
    if grammar != "LIST" and len(anchors) != 1:
        return False
    for number, anchor in enumerate(anchors):
        if number and not reader.take_one(JOINS):
            return False
        if not (reader.take(anchor) and reader.take(".")):
            return False
    return reader.is_done
