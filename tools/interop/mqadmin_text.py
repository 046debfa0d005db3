"""What mqadmin printed, made comparable between two clusters.

A line of titles, which begins with ``#``, counts to the last blank. In other lines, runs of blanks are one,
and what cannot be equal is replaced by what it is: a time, an address, an id.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from tools.interop.mqadmin_tool import Printed

_TYPES: Final = (
    (re.compile(r"\d{4}-\d\d-\d\d[ #]\d\d:\d\d:\d\d([,:]\d{3})?"), "<time>"),
    (re.compile(r"\b1[6-9]\d{11}\b"), "<ms>"),
    (re.compile(r"\b[0-9A-F]{56}\b|\b[0-9A-F]{32}\b"), "<id>"),
    (re.compile(r"\b\d+\.\d+\.\d+\.\d+@\d+#\d+"), "<client>"),
    (re.compile(r"\b\d+\.\d+\.\d+\.\d+:\d+"), "<address>"),
    (re.compile(r"\b\d+ms\b"), "<duration>"),
    # Of the last ten seconds, so it depends on when they are asked.
    (re.compile(r"^Consume TPS: \d+\.\d\d$"), "Consume TPS: <rate>"),
    (re.compile(r"(\bV\d+_\d+_\d+ +(PUSH|PULL) +(CLUSTERING|BROADCASTING) +)\d+"), r"\1<rate>"),
    # The RocketMQ servers are of other releases than the profiles of RewindMQ imitate.
    (re.compile(r"\bV\d+_\d+_\d+\b"), "<version>"),
    # 4.x reads 8 MiB behind the first record's start for it, and has none of a shorter log.
    (re.compile(r"\b(earliestMessageTimeStamp +: )(-1|1[6-9]\d{11})$"), r"\1<ms>"),
    # Each flushes when it likes.
    (re.compile(r"\b(remainHowManyDataToFlush +: )(\d+ |\d+\.\d [KM]i)B$"), r"\1<size>"),
    # Of 10, 60 and 600 s, each from when the broker is so old.
    (re.compile(r"\b((get|put)\w*Tps +:)[ \d.]*$"), r"\1 <rates>"),
    # Records of 5.x are longer by the properties below.
    (
        re.compile(r"(storeSize|commitLogOffset|physicOffset|physicSize|CommitLog Offset)(=|: +)\d+"),
        r"\1=<place>",
    ),
    (re.compile(r"(@<id>@)\d+"), r"\1<place>"),
    (re.compile(r"\b(MSG_REGION=DefaultRegion|TRACE_ON=true|WAIT=true)(, )?"), ""),
)
_NUMBER: Final = re.compile(r"(?<![\w.])-?\d+(\.\d+)?(?![\w.])")
_BLANKS: Final = re.compile(r"\s+")


def comparable(
    printed: Printed,
    names: Mapping[str, str],
    *,
    only_shape: bool = False,
    is_unordered: bool = False,
    ignored: Sequence[str] = (),
) -> list[str]:
    """The lines, free of what belongs to one cluster.

    Args:
        names: texts of this cluster and what stands for them.
        only_shape: every number is as good as any other.
        is_unordered: the lines are in hash order.
        ignored: patterns of lines that do not count.
    """
    lines = [
        _line(line, names, only_shape)
        for line in (*printed.output.splitlines(), *printed.errors.splitlines())
        if not any(re.search(pattern, line) for pattern in ignored)
    ]
    return sorted(lines) if is_unordered else lines


def _line(line: str, names: Mapping[str, str], only_shape: bool) -> str:
    if line.startswith("#"):
        return line
    # The longest first: one may be part of another.
    for text in sorted(names, key=len, reverse=True):
        line = line.replace(text, names[text])
    for pattern, kind in _TYPES:
        line = pattern.sub(kind, line)
    if only_shape:
        line = _NUMBER.sub("<number>", line)
    return _BLANKS.sub(" ", line).strip()
