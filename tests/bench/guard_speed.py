"""`python -m tests.bench.guard_speed [--profile]`: the guard on texts made to be slow, on words never seen, and cold.

Texts over the cap of a slot are refused at once, so that the cap is lifted here: what is measured is what the layers
behind it would cost. `--profile` prints where judging unseen words spends its time.
"""

import argparse
import cProfile
import gc
import itertools
import pstats
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Final, Protocol, cast
from unittest.mock import patch

from harness.guardscore import TOKEN
from kexpr.codes import SlotKind
from kexpr.guard import form, judge, lexicon, plainer, strange, warm, words
from kexpr.manifest import CAPS, Caps, Placeholder, PlaceholderKind, Slot

__all__ = ["SHAPES", "cold_start_ms", "forget_words", "growth", "main", "unseen_us"]

_SENTENCE: Final = Placeholder(PlaceholderKind.SENTENCE, "저장된 내용을 안내합니다.")
SLOT: Final = Slot("speed", SlotKind.DAILY_STATUS, (), (), (_SENTENCE,), _SENTENCE.expansion)
UNCAPPED: Final = {kind: Caps(1 << 30, 1 << 30) for kind in CAPS}
BYTES: Final = 16 << 10
ROUNDS: Final = 5
UNSEEN: Final = 10_000
WORDS_A_TEXT: Final = 6
_SYLLABLES: Final = "가나다라마바사아자차카타파하거너더러머버서어저처커터퍼허"


def distinct_words(length: int = 4) -> Iterator[str]:
    """Words of `length` syllables, no two alike, nearly all unknown."""
    return map("".join, itertools.product(_SYLLABLES, repeat=length))


def _of(unit: str) -> Callable[[int], str]:
    """A text of some bytes that repeats `unit`."""
    return lambda size: unit * (size // len(unit.encode()))


def _distinct(size: int) -> str:
    return " ".join(itertools.islice(distinct_words(), size // 13))


def _nested(size: int) -> str:
    depth = size // 8
    return "(" * depth + "말" + ")" * depth


SHAPES: Final[dict[str, Callable[[int], str]]] = {
    "one syllable, no space": _of("가"),
    "one syllable, spaced": _of("듯 "),
    "one word of discourse": _of("오늘 "),
    "spaces": lambda size: f"말{' ' * size}말",
    "full stops": _of("."),
    "closed sentences": _of("네. "),
    "brackets": _of("("),
    "nested brackets": _nested,
    "pairs of brackets": _of("(말) "),
    "quotation marks": _of("'말' "),
    "middle dots": _of("말·"),
    "placeholder brackets": _of("⟦"),
    "Hanja": _of("服用"),
    "particles apart": _of("말씀 은 "),
    "a verb and its auxiliary": _of("읽어 보고 "),
    "an unknown word, long": _of("뷁뛟쉛"),
    "an unknown word, spaced": _of("마루 "),
    "images": _of("꽃처럼 "),
    "an image without company": _of("꽃이 "),
    "words that may be verbs": _of("그래서 함께 "),
    "an unknown word compared": _of("코뿔소처럼 "),
    "distinct words": _distinct,
}


class _Cached(Protocol):
    def cache_clear(self) -> None: ...


def forget_words() -> None:
    """Empties every cache of words; the lexicon itself stays loaded."""
    caches: tuple[object, ...] = (
        form._reads_as_particle,
        words.spelled,
        strange.named,
        strange.tolerated,
        strange.hidden,
        lexicon.denied_category,
        lexicon.is_denied_word,
        lexicon.respelled_category,
        lexicon.lexicon().read,
        plainer.plainer,
    )
    for cached in caches:
        cast(_Cached, cached).cache_clear()


def _judge_ms(text: str) -> tuple[float, str]:
    """(median milliseconds, no word of it seen before; the code it ends with)."""
    samples, placed = [], f"{text.rstrip()}. {TOKEN}"
    for _ in range(ROUNDS):
        forget_words()
        began = time.perf_counter()
        decision = judge(placed, SLOT, (TOKEN,))
        samples.append((time.perf_counter() - began) * 1000)
    return median(samples), decision.reason or "accepted"


def growth(shape: Callable[[int], str]) -> tuple[list[float], str]:
    """(milliseconds at 16, 32 and 64 KiB, caps lifted; the code the last ends with)."""
    with patch.dict(CAPS, UNCAPPED):
        judged = [_judge_ms(shape(BYTES * factor)) for factor in (1, 2, 4)]
    return [milliseconds for milliseconds, _ in judged], judged[-1][1]


def unseen_texts() -> list[str]:
    """Texts of words that occur once."""
    words = distinct_words()
    return [f"{' '.join(itertools.islice(words, WORDS_A_TEXT))}. {TOKEN}" for _ in range(UNSEEN)]


def judge_all(texts: Sequence[str]) -> list[float]:
    """Microseconds of each."""
    samples = []
    for text in texts:
        began = time.perf_counter()
        judge(text, SLOT, (TOKEN,))
        samples.append((time.perf_counter() - began) * 1e6)
    return sorted(samples)


def unseen_us(texts: Sequence[str]) -> tuple[float, float, float]:
    """(median, 99th percentile, worst) microseconds a text."""
    forget_words()
    gc.collect()
    samples = judge_all(texts)
    return median(samples), samples[len(samples) * 99 // 100], samples[-1]


_COLD: Final = """
import time
began = time.perf_counter()
from tests.bench.guard_speed import SLOT, TOKEN
from kexpr.guard import judge, warm
imported = time.perf_counter()
{warmed}
loaded = time.perf_counter()
judge(f"오늘 바닷가 이야기를 이어 볼게요. {{TOKEN}}", SLOT, (TOKEN,))
print((loaded - imported) * 1000, (time.perf_counter() - loaded) * 1000)
"""


def cold_start_ms(warmed: bool) -> tuple[float, float]:
    """(`warm()`, the first judgement) in milliseconds, each in processes of their own."""
    program = _COLD.format(warmed="warm()" if warmed else "")
    runs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
        for _ in range(ROUNDS)
    ]
    return median(float(run[0]) for run in runs), median(float(run[1]) for run in runs)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.guard_speed")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args(arguments)
    warm()
    if options.profile:
        texts = unseen_texts()
        forget_words()
        with cProfile.Profile() as profile:
            judge_all(texts)
        pstats.Stats(profile).sort_stats("tottime").print_stats(20)
        return 0
    print("| text, caps lifted | 16 KiB, ms | 32 KiB | 64 KiB | 64 over 16 | ends with |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, shape in SHAPES.items():
        times, code = growth(shape)
        cells = " | ".join(f"{each:.2f}" for each in times)
        print(f"| {name} | {cells} | {times[-1] / times[0]:.1f} | `{code}` |", flush=True)
    middle, high, worst = unseen_us(unseen_texts())
    print(
        f"\n{UNSEEN:,} texts of {WORDS_A_TEXT} unseen words: median {middle:.0f} µs, p99 {high:.0f}, worst {worst:.0f}."
    )
    _, first = cold_start_ms(warmed=False)
    loading, second = cold_start_ms(warmed=True)
    print(f"First judgement of a process: {first:.0f} ms; after `warm()` ({loading:.0f} ms): {second:.2f} ms.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
