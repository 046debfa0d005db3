"""Bodies of messages as a page shows them: text or a hex dump, never more than some kilobytes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.message import MessageExt
from rewindmq.protocol.message.message import inflate_begin
from rewindmq.protocol.message.sysflag import MessageSysFlag
from rewindmq.protocol.text import escape_controls

# Bytes of a body that a page shows as text, and as a hex dump.
TEXT_BYTES: Final = 16 << 10
DUMP_BYTES: Final = 1 << 10
# Characters in the row of a list.
EXCERPT: Final = 80
_ROW: Final = 16


@dataclass(frozen=True)
class ShownBody:
    """A body on a page.

    Attributes:
        text: what to show, with every character escaped that does not print, except line feeds.
        kind: ``text``, ``JSON``, ``binary`` or ``empty``.
        size: bytes of the whole body.
        shown: bytes of it that ``text`` shows.
        problem: why the body is shown as it is stored; None: it could be read.
    """

    text: str
    kind: str
    size: int
    shown: int
    problem: str | None = None


def shown_body(message: MessageExt) -> ShownBody:
    """Return the body as a page shows it; one that inflates to 64 MiB takes half a second."""
    body, problem = readable_body(message)
    if not body:
        return ShownBody("", "empty", 0, 0, problem)
    text = None if problem else _as_text(body[:TEXT_BYTES], is_cut=len(body) > TEXT_BYTES)
    if text is None:
        shown = body[:DUMP_BYTES]
        return ShownBody(_dump(shown), "binary", len(body), len(shown), problem)
    if len(body) <= TEXT_BYTES and (pretty := _as_json(text)) is not None:
        return ShownBody(_escape(pretty), "JSON", len(body), len(body))
    return ShownBody(_escape(text), "text", len(body), min(len(body), TEXT_BYTES))


def excerpt(message: MessageExt) -> str:
    """Return the begin of the body in one line; no more of the body is inflated."""
    body, is_readable = _begin(message, EXCERPT * 4 + 1)
    text = _as_text(body[: EXCERPT * 4], is_cut=len(body) > EXCERPT * 4) if is_readable else None
    if text is None:
        return body[:24].hex(" ") + (" …" if len(body) > 24 else "")
    line = escape_controls(text[:EXCERPT])
    return line + ("…" if len(text) > EXCERPT else "")


def _begin(message: MessageExt, count: int) -> tuple[bytes, bool]:
    """Return the first bytes of the body, and True; or of the body as it is stored, and False."""
    stored = bytes(message.stored_body[:count])
    if not message.sys_flag & MessageSysFlag.COMPRESSED:
        return stored, True
    try:
        return inflate_begin(message.stored_body, message.sys_flag, count), True
    except ClientError:
        return stored, False


def readable_body(message: MessageExt) -> tuple[bytes, str | None]:
    """Return the body, inflated, and None; or as it is stored, and why it cannot be read."""
    try:
        return bytes(message.body), None
    except ClientError as error:
        return bytes(message.stored_body), str(error)


def _as_text(body: bytes, *, is_cut: bool) -> str | None:
    """Return UTF-8 text; None if it is none. A cut may have left a part of the last character."""
    for end in range(len(body), max(len(body) - 4, -1) if is_cut else len(body) - 1, -1):
        try:
            text = body[:end].decode()
        except UnicodeDecodeError:
            continue
        return None if any(character < " " and character not in "\t\r\n" for character in text) else text
    return None


def _as_json(text: str) -> str | None:
    if not text.lstrip().startswith(("{", "[")):
        return None
    parts: list[str] = []
    length = 0
    try:
        value = json.loads(
            text, parse_float=_same_float, parse_constant=_refuse, object_pairs_hook=_without_repeats
        )
        # Part by part, because indenting deep nesting makes a megabyte of a kilobyte.
        for part in json.JSONEncoder(indent=2, ensure_ascii=False).iterencode(value):
            parts.append(part)
            length += len(part)
            if length > 4 * TEXT_BYTES:
                return None
    except (ValueError, RecursionError):
        return None
    return "".join(parts)


def _same_float(text: str) -> float:
    """Return the number, if it would be written so again; otherwise the page would show another body."""
    if repr(number := float(text)) != text:
        raise ValueError(text)
    return number


def _refuse(text: str) -> object:
    raise ValueError(text)


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len(table := dict(pairs)) != len(pairs):
        raise ValueError("a key is there twice")
    return table


def _escape(text: str) -> str:
    return "\n".join(escape_controls(line.removesuffix("\r")) for line in text.split("\n"))


def _dump(body: bytes) -> str:
    rows = []
    for place in range(0, len(body), _ROW):
        row = body[place : place + _ROW]
        printed = "".join(chr(byte) if 0x20 <= byte < 0x7F else "." for byte in row)
        rows.append(f"{place:08x}  {row.hex(' '):<{3 * _ROW - 1}}  {printed}")
    return "\n".join(rows)
