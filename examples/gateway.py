"""A small coaching gateway: four surfaces on one python-telegram-bot application, in shadow and enabled.

    python examples/gateway.py

Nothing leaves the machine: Telegram is `bot_api.py` on loopback, the provider is the harness's rehearsal server on a
Unix socket, there is no secret. Read `Host`, what a gateway has anyway, then `CoachGateway`, what adopting kexpr adds;
the rest builds both and plays a customer.
"""

import asyncio
import hashlib
import tempfile
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

from telegram import Bot, CallbackQuery, InlineKeyboardButton, InlineKeyboardMarkup, Message, Update
from telegram.error import BadRequest
from telegram.ext import (
    Application,
    ApplicationHandlerStop,
    CallbackQueryHandler,
    ContextTypes,
    MessageHandler,
    filters,
)
from telegram.request import HTTPXRequest

import kexpr
from examples.bot_api import TOKEN, BotApi
from harness.rehearsal.prose import answer_bytes
from harness.rehearsal.server import RehearsalServer
from kexpr.rollback import Drained, drain
from kexpr.surfaces.daily import daily_presentation
from kexpr.surfaces.dualcoachtest import dual_card_presentation
from kexpr.surfaces.physique import physique_card_presentation, render_physique_source
from kexpr.surfaces.weekly import weekly_presentation
from kexpr.transport import ClientFactory

__all__ = ["CoachGateway", "Host", "feature_block", "walk"]

Anybot = Application[Any, Any, Any, Any, Any, Any]


def feature_block(mode: str) -> dict[str, object]:
    """What stands under `platforms.telegram.extra.korean_expression_postprocessor`."""
    surfaces = dict.fromkeys(("daily", "weekly", "adaptive_dualcoachtest", "adaptive_physique"), True)
    provider = {
        "id": "openai-direct",
        "transport": "chat_completions",
        "endpoint": "https://api.openai.com/v1",
        "model": "gpt-4.1-mini",
        "max_output_tokens": 160,
        "timeout_seconds": 3,
    }
    return {"schema_version": 2, "mode": mode, "surfaces": surfaces, "provider": provider}


class Host:
    """What the gateway knows: saved check-ins and operator sessions.

    kexpr asks it from its own threads and holds `lock` while it writes a card's claim and outcome to disk, so whoever
    takes it on the event loop would wait for the disk there: hence `to_thread` below.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._saved: set[str] = set()
        self._consumed: set[str] = set()

    def save(self, event_id: str) -> bool:
        """Save a check-in; True the first time, which is the only time that may carry prose."""
        with self.lock:
            is_first = event_id not in self._saved
            self._saved.add(event_id)
            return is_first

    def consume(self, session_id: str) -> None:
        with self.lock:
            self._consumed.add(session_id)

    def event_exists(self, event_id: str) -> bool:
        return event_id in self._saved

    def is_ready(self, _task_digest: str) -> bool:
        """Whether the schedule still wants a weekly task sent."""
        return True

    def is_just_consumed(self, origin: kexpr.CardPresentationOrigin) -> bool:
        """Asked while `lock` is held, so it must not take it; so is the next one."""
        return origin.source_session_id in self._consumed

    def current_binding_digest(self, origin: kexpr.CardPresentationOrigin) -> str:
        return _digest("binding", origin.source_session_id)


class CoachGateway:
    """The four surfaces. Every call awaits; no lock, file or request of kexpr runs on the event loop."""

    def __init__(self, state: kexpr.State, coordinator: kexpr.Coordinator, host: Host) -> None:
        self._coordinator = coordinator
        self._host = host
        self.stores = (
            daily := state.daily(host.event_exists),
            weekly := state.weekly(host.is_ready),
            adaptive := state.adaptive(lambda: host.lock, host),
        )
        self.daily = kexpr.DailyPath(coordinator, daily, state.locks)
        self.weekly = kexpr.WeeklyPath(coordinator, weekly, state.locks)
        self.adaptive = kexpr.AdaptivePath(coordinator, adaptive, state.locks)
        self.awaiting_note: dict[int, Message] = {}
        """By chat: the card that the operator's next note belongs to."""

    def install(self, application: Anybot, group: int = 0) -> None:
        """Before the application's other handlers, if `group` is lower than theirs."""
        application.add_handler(CallbackQueryHandler(self._on_save, pattern="^save:"), group)
        application.add_handler(CallbackQueryHandler(self._on_card, pattern="^card:"), group)
        application.add_handler(CallbackQueryHandler(self._on_ask_note, pattern="^note:"), group)
        application.add_handler(MessageHandler(filters.TEXT & ~filters.COMMAND, self._on_note), group)

    async def first_save(self, message: kexpr.DailyMessage, shown: Message) -> kexpr.Publication:
        return await _until_settled(
            lambda: self.daily.first_save_async(message, _editing(shown)),
            lambda: self.daily.replay_async(message, _editing(shown)),
        )

    async def replay(self, message: kexpr.DailyMessage, shown: Message) -> kexpr.Publication:
        """A duplicate, an explicit replay or a restart: canonical, never a call."""
        return await _until_settled(lambda: self.daily.replay_async(message, _editing(shown)))

    async def publish_card(self, card: kexpr.Card, shown: Message) -> kexpr.Publication:
        return await _until_settled(lambda: self.adaptive.publish_async(card, _editing(shown)))

    async def weekly_tick(self, bot: Bot, delivery: kexpr.WeeklyDelivery) -> kexpr.Publication:
        """From the scheduler, as often as it likes, and after each restart."""

        async def send(destination: str, text: str) -> None:
            await bot.send_message(int(destination), text)

        return await _until_settled(lambda: self.weekly.deliver_async(delivery, send))

    async def drain(self) -> Drained:
        """Before the process ends: no attempt begins, every claim ends. It blocks, so it gets a thread."""
        return await asyncio.to_thread(drain, self._coordinator, self.stores)

    async def _on_save(self, update: Update, _: ContextTypes.DEFAULT_TYPE) -> None:
        query, event_id = _tapped(update)
        await query.answer()
        is_first = await asyncio.to_thread(self._host.save, event_id)
        entry = self.first_save if is_first else self.replay
        await entry(check_in(event_id), _message_of(query))
        raise ApplicationHandlerStop

    async def _on_card(self, update: Update, _: ContextTypes.DEFAULT_TYPE) -> None:
        query, session_id = _tapped(update)
        await query.answer()
        await asyncio.to_thread(self._host.consume, session_id)
        shown = _message_of(query)
        origin = kexpr.CardPresentationOrigin(
            kexpr.OriginKind.CALLBACK, session_id, query.data or "", str(shown.message_id)
        )
        await self.publish_card(dual_card(origin), shown)
        raise ApplicationHandlerStop

    async def _on_ask_note(self, update: Update, _: ContextTypes.DEFAULT_TYPE) -> None:
        query, _session_id = _tapped(update)
        await query.answer("메모를 입력하세요")
        shown = _message_of(query)
        self.awaiting_note[shown.chat_id] = shown
        raise ApplicationHandlerStop

    async def _on_note(self, update: Update, _: ContextTypes.DEFAULT_TYPE) -> None:
        """The next text of a chat that was asked for a note; any other text is the other handlers'."""
        typed = update.effective_message
        shown = self.awaiting_note.pop(typed.chat_id, None) if typed else None
        if shown is None or typed is None:
            return
        session_id = f"note-{shown.message_id}"
        await asyncio.to_thread(self._host.consume, session_id)
        origin = kexpr.CardPresentationOrigin(
            kexpr.OriginKind.TYPED_NOTE, session_id, f"note:{session_id}", str(shown.message_id)
        )
        await self.publish_card(physique_card(origin, typed.text or ""), shown)
        raise ApplicationHandlerStop


async def _until_settled(
    call: Callable[[], Awaitable[kexpr.Publication]], again: Callable[[], Awaitable[kexpr.Publication]] | None = None
) -> kexpr.Publication:
    """Somebody else's claim is alive at most four seconds: look again when it has ended."""
    publication = await call()
    while publication.wait_ms:
        await asyncio.sleep(publication.wait_ms / 1000 + 0.02)
        publication = await (again or call)()
    return publication


def _editing(shown: Message) -> Callable[[str], Awaitable[None]]:
    """The text as it is: no `parse_mode`, and the buttons again, which an edit without them takes away."""

    async def edit(text: str) -> None:
        try:
            await shown.edit_text(text, reply_markup=shown.reply_markup)
        except BadRequest as refused:
            if "not modified" not in refused.message:  # it shows this text already
                raise

    return edit


def _tapped(update: Update) -> tuple[CallbackQuery, str]:
    query = update.callback_query
    assert query is not None
    return query, (query.data or "").partition(":")[2]


def _message_of(query: CallbackQuery) -> Message:
    assert isinstance(query.message, Message)
    return query.message


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


# What the gateway renders. The typed presentation and the canonical text say the same, byte for byte.


def check_in(event_id: str) -> kexpr.DailyMessage:
    facts = ("70.2kg", "2100kcal", "230g·120g·60g", "걷기 30분", "7시간 10분", "보통", "편안함")
    shown = daily_presentation(event_id, facts, ("물 자주 마시기", "저녁 산책하기"))
    return kexpr.DailyMessage(event_id, shown, shown.canonical_payload)


def dual_card(origin: kexpr.CardPresentationOrigin) -> kexpr.Card:
    shown = dual_card_presentation(
        envelope="[연습] 운영자 카드",
        title="적응형 영양 검토 · 가상고객 101",
        decision_code="maintain",
        recommendations=("현재 섭취 목표 유지",),
        reason_codes=("short_window",),
    )
    binding = _digest("binding", origin.source_session_id)
    return kexpr.Card(origin, kexpr.Surface.ADAPTIVE_DUALCOACHTEST, shown, shown.canonical_payload, binding)


def physique_card(origin: kexpr.CardPresentationOrigin, note: str) -> kexpr.Card:
    source = render_physique_source(
        envelope="[연습] 운영자 카드",
        subject="가상고객 102 · 훈련일 · D+12",
        review_decision_code="keep",
        basis="주간 평균 비교",
        optional=(f"메모: {' '.join(note.split())}",),
    )
    shown = physique_card_presentation("keep", source)
    binding = _digest("binding", origin.source_session_id)
    return kexpr.Card(origin, kexpr.Surface.ADAPTIVE_PHYSIQUE, shown, shown.canonical_payload, binding)


def weekly_delivery(task: str, chat_id: int) -> kexpr.WeeklyDelivery:
    pins = kexpr.Pins(*(_digest(name, task) for name in ("destination", "registry", "config", "template")))

    def render() -> kexpr.WeeklyReport:
        shown = weekly_presentation(
            interpretation_enum="within_range",
            rationale_enum="single_week",
            title="주간 영양 리포트 · 가상 자료",
            facts=("평균 체중: 70.1kg", "평균 섭취: 2080kcal", "기록한 날: 6일"),
            judgment="현재 계획 유지",
            actions=("물 자주 마시기",),
        )
        return kexpr.WeeklyReport(shown, shown.canonical_payload)

    return kexpr.WeeklyDelivery(kexpr.WeeklyTask(task), str(chat_id), lambda: pins, render)


# The rest is the stage: a loopback Telegram, a rehearsal provider, a customer who taps.

_CHAT: Final = 7
_ENVIRON: Final[Mapping[str, str]] = {"OPENAI_API_KEY": "sk-rehearsal-0123456789"}
"""A gateway leaves this away: the coordinator reads the process's environment at every attempt."""


def _application(api: BotApi) -> Anybot:
    """`trust_env` is off so that no proxy of the machine gets between us and loopback."""
    request = HTTPXRequest(httpx_kwargs={"trust_env": False})
    return Application.builder().token(TOKEN).base_url(api.base_url).request(request).updater(None).build()


async def walk(mode: str, directory: Path, show: Callable[[str], None]) -> None:
    """Play all four surfaces in `mode` and give `show` what the customer sees."""
    with BotApi() as api, RehearsalServer(answer_bytes) as provider:
        host, state = Host(), kexpr.State(directory / "state")
        telemetry = kexpr.Telemetry([], profile="physique-coach")
        coordinator = kexpr.Coordinator(
            kexpr.from_extra({"korean_expression_postprocessor": feature_block(mode)}),
            identity_key=lambda: state.identity_key,
            telemetry=telemetry,
            clients=ClientFactory(_seam=provider.seam),
            environ=_ENVIRON,
        )
        await asyncio.to_thread(coordinator.warm)
        gateway, application = CoachGateway(state, coordinator, host), _application(api)
        gateway.install(application)
        async with AsyncExitStack() as stack:
            stack.callback(state.close)
            stack.callback(telemetry.close)
            await stack.enter_async_context(application)
            await _play(api, application, gateway, show)
            drained = await gateway.drain()
        show(f"{provider.requests} requests to the provider · drained: {'clean' if drained.clean else 'not clean'}")


async def _play(api: BotApi, application: Anybot, gateway: CoachGateway, show: Callable[[str], None]) -> None:
    async def feed(update: Mapping[str, Any]) -> None:
        await application.process_update(Update.de_json(dict(update), application.bot))

    async def place(text: str, *data: str) -> int:
        buttons = InlineKeyboardMarkup([[InlineKeyboardButton(name, callback_data=name) for name in data]])
        sent: Message = await application.bot.send_message(_CHAT, text, reply_markup=buttons)
        return sent.message_id

    def seen(step: str, message_id: int) -> None:
        message = api.shown(_CHAT, message_id)
        rows = message.buttons["inline_keyboard"] if message.buttons else []
        buttons = " ".join(f"[{button['text']}]" for row in rows for button in row)
        show("\n".join(filter(None, (f"── {step}", message.text, buttons))))

    daily = await place("체크인을 저장할까요?", "save:event-1")
    for step in ("daily: first save", "daily: a second tap"):
        await feed(api.tap(_CHAT, daily, "save:event-1"))
        seen(step, daily)
    for step in ("weekly: tick", "weekly: the next tick sends nothing"):
        before = len(api.visible)
        await gateway.weekly_tick(application.bot, weekly_delivery("week-1", _CHAT))
        show(f"── {step}\n" + "\n".join(call.fields["text"] for call in api.visible[before:]))
    card = await place("검토할 카드가 있습니다.", "card:session-1", "card:later")
    await feed(api.tap(_CHAT, card, "card:session-1"))
    seen("dual card: callback", card)
    note = await place("메모가 필요합니다.", "note:session-2")
    await feed(api.tap(_CHAT, note, "note:session-2"))
    await feed(api.note(_CHAT, "연습용 메모"))
    seen("physique card: typed note", note)


def main() -> None:
    for mode in ("shadow", "enabled"):
        print(f"\n══ {mode}\n")
        with tempfile.TemporaryDirectory() as directory:
            asyncio.run(walk(mode, Path(directory), lambda text: print(text + "\n")))


if __name__ == "__main__":
    main()
