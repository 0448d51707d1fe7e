"""One pass over brackets and quotation marks finds the pairs that taking the innermost away, again and again, finds."""

import re

from hypothesis import given
from hypothesis import strategies as st

from kexpr.codes import Reason
from tests.unit.guard.test_policy import reason

INNERMOST = re.compile(r"""(?<![^ ('"])(?:\((?! )[^()'"]+(?<! )\)|'(?! )[^()'"]+(?<! )'|"(?! )[^()'"]+(?<! )")""")
TEXTS = st.lists(st.sampled_from([*"(()'\"", "말", "말씀", ", ", " ", "은", ")", "')"]), max_size=24).map("".join)


def all_paired(text: str) -> bool:
    left = ""
    while left != text:
        left, text = text, INNERMOST.sub("말", text, count=1)
    return not set("()'\"") & set(text)


@given(TEXTS)
def test_one_pass_finds_the_pairs(text):
    found = reason(f"말 {text} 말. ⟦p⟧")
    if found is not Reason.FORM_SPACING:
        assert (found is not Reason.FORM_PUNCTUATION) >= all_paired(f"말 {text} 말. ⟦p⟧")
        if not all_paired(f"말 {text} 말. ⟦p⟧"):
            assert found is Reason.FORM_PUNCTUATION
