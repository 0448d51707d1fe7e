"""One YAML document, or a code: no alias, anchor, merge, tag, directive, duplicate or non-string key, and bounded.

Theory of operation. PyYAML's parser is a state machine over events, so that neither depth nor aliases cost anything
before we look. The tree is built here, event by event; scalars are resolved as YAML 1.1 does, since the host's own
loader resolves them so. PyYAML's errors quote the document and never leave this module.
"""

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Final

import yaml
from yaml.constructor import SafeConstructor
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
    StreamStartEvent,
)
from yaml.nodes import ScalarNode
from yaml.resolver import Resolver

__all__ = ["MAX_BYTES", "MAX_DEPTH", "MAX_NODES", "YamlFault", "YamlInvalid", "load"]

MAX_BYTES: Final = 256 * 1024
MAX_DEPTH: Final = 32
MAX_NODES: Final = 10_000

_BOM: Final = b"\xef\xbb\xbf"
_PREFIX: Final = "tag:yaml.org,2002:"


class YamlFault(StrEnum):
    """Why a document is not read. The first four are of the file around it."""

    NOT_READABLE = "not_readable"
    NOT_REGULAR = "not_regular"
    TOO_LARGE = "too_large"
    BYTE_ORDER_MARK = "byte_order_mark"
    NOT_UTF8 = "not_utf8"
    SYNTAX = "syntax"
    NOT_ONE_DOCUMENT = "not_one_document"
    DIRECTIVE = "directive"
    TOO_DEEP = "too_deep"
    TOO_MANY_NODES = "too_many_nodes"
    ALIAS = "alias"
    ANCHOR = "anchor"
    TAG = "tag"
    MERGE_KEY = "merge_key"
    NON_STRING_KEY = "non_string_key"
    DUPLICATE_KEY = "duplicate_key"
    SCALAR = "scalar"


class YamlInvalid(Exception):
    """A document that is refused; `fault` says why, and nothing says where or what."""

    def __init__(self, fault: YamlFault) -> None:
        super().__init__(fault.value)
        self.fault = fault


def load(data: bytes) -> object:
    """The document as `dict`, `list`, `str`, `int`, `float`, `bool` and `None`; raises `YamlInvalid`."""
    if len(data) > MAX_BYTES:
        raise YamlInvalid(YamlFault.TOO_LARGE)
    if data.startswith(_BOM):
        raise YamlInvalid(YamlFault.BYTE_ORDER_MARK)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = None
    if text is None:
        raise YamlInvalid(YamlFault.NOT_UTF8)
    return _Builder(_events(text)).document()


def _events(text: str) -> Iterator[Event]:
    """PyYAML's events; its error becomes a code outside the handler, so that no quotation hangs on."""
    parser = iter(yaml.parse(text, Loader=yaml.SafeLoader))
    while True:
        event: Event | None = None
        broken = False
        try:
            event = next(parser, None)
        except (yaml.YAMLError, ValueError, RecursionError):
            broken = True
        if broken:
            raise YamlInvalid(YamlFault.SYNTAX)
        if event is None:
            return
        yield event


class _Builder:
    def __init__(self, events: Iterator[Event]) -> None:
        self._events = events
        self._nodes = 0

    def document(self) -> object:
        self._expect(StreamStartEvent)
        start = self._next()
        if not isinstance(start, DocumentStartEvent):
            raise YamlInvalid(YamlFault.NOT_ONE_DOCUMENT)
        if start.version or start.tags:
            raise YamlInvalid(YamlFault.DIRECTIVE)
        value = self._value(self._next(), 1)
        self._expect(DocumentEndEvent)
        self._expect(StreamEndEvent)
        return value

    def _next(self) -> Event:
        event = next(self._events, None)
        if event is None:
            raise YamlInvalid(YamlFault.SYNTAX)
        return event

    def _expect(self, kind: type[Event]) -> None:
        if not isinstance(self._next(), kind):
            raise YamlInvalid(YamlFault.NOT_ONE_DOCUMENT)

    def _value(self, event: Event, depth: int) -> object:
        self._admit(event, depth)
        if isinstance(event, ScalarEvent):
            return _scalar(event)
        if isinstance(event, SequenceStartEvent):
            return self._sequence(depth)
        return self._mapping(depth)

    def _admit(self, event: Event, depth: int) -> None:
        """Bounds and everything a node may not have."""
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise YamlInvalid(YamlFault.TOO_MANY_NODES)
        if depth > MAX_DEPTH:
            raise YamlInvalid(YamlFault.TOO_DEEP)
        if isinstance(event, AliasEvent):
            raise YamlInvalid(YamlFault.ALIAS)
        if not isinstance(event, (ScalarEvent, MappingStartEvent, SequenceStartEvent)):
            raise YamlInvalid(YamlFault.SYNTAX)
        if event.anchor is not None:
            raise YamlInvalid(YamlFault.ANCHOR)
        if event.tag is not None:
            raise YamlInvalid(YamlFault.TAG)

    def _sequence(self, depth: int) -> list[object]:
        values: list[object] = []
        while not isinstance(event := self._next(), SequenceEndEvent):
            values.append(self._value(event, depth + 1))
        return values

    def _mapping(self, depth: int) -> dict[str, object]:
        values: dict[str, object] = {}
        while not isinstance(event := self._next(), MappingEndEvent):
            self._admit(event, depth + 1)
            key = _key(event)
            if key in values:
                raise YamlInvalid(YamlFault.DUPLICATE_KEY)
            values[key] = self._value(self._next(), depth + 1)
        return values


_RESOLVER: Final = Resolver()
_CONSTRUCTOR: Final = SafeConstructor()
_CONSTRUCT: Final[dict[str, Callable[[ScalarNode], object]]] = {
    f"{_PREFIX}null": _CONSTRUCTOR.construct_yaml_null,
    f"{_PREFIX}bool": _CONSTRUCTOR.construct_yaml_bool,
    f"{_PREFIX}int": _CONSTRUCTOR.construct_yaml_int,
    f"{_PREFIX}float": _CONSTRUCTOR.construct_yaml_float,
}
"""Whatever else a plain scalar resolves to (a timestamp) stays the text it is."""


def _tag_of(event: ScalarEvent) -> str:
    return str(_RESOLVER.resolve(ScalarNode, event.value, event.implicit))  # type: ignore[no-untyped-call]


def _scalar(event: ScalarEvent) -> object:
    tag = _tag_of(event)
    construct = _CONSTRUCT.get(tag)
    if construct is None:
        return event.value
    try:
        return construct(ScalarNode(tag, event.value))
    except (ValueError, OverflowError, yaml.YAMLError):
        pass
    raise YamlInvalid(YamlFault.SCALAR)


def _key(event: Event) -> str:
    if not isinstance(event, ScalarEvent):
        raise YamlInvalid(YamlFault.NON_STRING_KEY)
    tag = _tag_of(event)
    if tag == f"{_PREFIX}merge":
        raise YamlInvalid(YamlFault.MERGE_KEY)
    if tag != f"{_PREFIX}str":
        raise YamlInvalid(YamlFault.NON_STRING_KEY)
    return str(event.value)
