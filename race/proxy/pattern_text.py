"""Frame patterns as one line of text, for the command line."""

from __future__ import annotations

from typing import Any, Final

from rewindmq.protocol.code import RequestCode, ResponseCode
from rewindmq.race.errors import RaceError
from rewindmq.race.proxy.pattern import Form, FramePattern

PATTERN_HELP: Final = (
    "CODE [request|oneway|response] [answer=CODE] [client=NAME] [server=NAME] [NAME=VALUE ...] "
    "[skip=N] [count=N|all] [blocks], "
    "as in 'PULL_MESSAGE response queueId=0 skip=1'"
)

_REQUEST_CODES: Final = {code.name: code for code in RequestCode}
_RESPONSE_CODES: Final = {code.name: code for code in ResponseCode}
_REQUEST_NUMBERS: Final = {str(code.value): code for code in RequestCode}
_FORMS: Final = {form.value: form for form in Form}
_BLOCKS: Final = "blocks"
_ALL: Final = "all"
# Codes and counts are 32-bit numbers.
_MAX_DIGITS: Final = 10


def parse_pattern(text: str) -> FramePattern:
    """Parse a pattern in the form of ``PATTERN_HELP``. Codes are numbers or RocketMQ's names.

    Raises:
        RaceError: the text is not a pattern; the error names the wrong word.
    """
    code_text, *words = text.split() or [""]
    form: Form | None = None
    counts: dict[str, int | None] = {"skip": 0, "count": 1, "answer": None}
    ends: dict[str, str | None] = {"client": None, "server": None}
    fields: dict[str, Any] = {}
    blocks = False
    for word in words:
        name, equals, value = word.partition("=")
        if word in _FORMS:
            if form not in (None, _FORMS[word]):
                raise RaceError(f"{word!r} in the pattern {text!r} contradicts {form}")
            form = _FORMS[word]
        elif word == _BLOCKS:
            blocks = True
        elif not equals or not name:
            raise RaceError(
                f"{word!r} in the pattern {text!r} is not understood; a pattern is {PATTERN_HELP}"
            )
        elif name == "answer":
            counts[name] = _response_code(value, text)
        elif name in ends:
            ends[name] = value
        elif name in counts:
            counts[name] = None if name == "count" and value == _ALL else _whole_number(name, value, text)
        else:
            fields[name] = value
    if counts["answer"] is not None:
        if form not in (None, Form.RESPONSE):
            raise RaceError(f"answer= in the pattern {text!r} is of responses, not of {form} frames")
        form = Form.RESPONSE
    return FramePattern(
        code=_request_code(code_text, text),
        form=form,
        response_code=counts["answer"],
        fields=fields,
        skip=counts["skip"] or 0,
        count=counts["count"],
        blocks=blocks,
        client=ends["client"],
        server=ends["server"],
    )


def format_pattern(pattern: FramePattern) -> str:
    """Return the text of a pattern, which ``parse_pattern`` accepts."""
    words = [pattern.code.name]
    if pattern.form is not None:
        words.append(str(pattern.form))
    if pattern.response_code is not None:
        words.append(f"answer={pattern.response_code}")
    ends = {"client": pattern.client, "server": pattern.server}
    words += [f"{name}={value}" for name, value in ends.items() if value is not None]
    words += [f"{name}={value}" for name, value in pattern.fields.items()]
    if pattern.skip:
        words.append(f"skip={pattern.skip}")
    if pattern.count != 1:
        words.append(f"count={_ALL if pattern.count is None else pattern.count}")
    if pattern.blocks:
        words.append(_BLOCKS)
    return " ".join(words)


def _request_code(word: str, text: str) -> RequestCode:
    code = _REQUEST_CODES.get(word.upper())
    if code is None and word in _REQUEST_NUMBERS:
        code = _REQUEST_NUMBERS[word]
    if code is None:
        raise RaceError(
            f"{word!r} in the pattern {text!r} is not a request code; a pattern is {PATTERN_HELP}"
        )
    return code


def _response_code(word: str, text: str) -> int:
    code = _RESPONSE_CODES.get(word.upper())
    return int(code) if code is not None else _whole_number("answer", word, text)


def _whole_number(name: str, word: str, text: str) -> int:
    if not (word.isascii() and word.isdigit()):
        raise RaceError(f"{name}={word} in the pattern {text!r} is not a whole number")
    if len(word) > _MAX_DIGITS:
        raise RaceError(f"{name}={word[:_MAX_DIGITS]}… in the pattern has more than {_MAX_DIGITS} digits")
    return int(word)
