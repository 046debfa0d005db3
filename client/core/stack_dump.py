"""Stack dump of this process, which GET_CONSUMER_RUNNING_INFO (307) returns on request."""

from __future__ import annotations

import asyncio
import io
import sys
import threading
import traceback
from collections.abc import Mapping
from typing import Any, Final

# A remoting frame could hold more, but a reader of the dump does not need more.
_MAX_STACK_CHARACTERS: Final = 1 << 20
_FRAMES_PER_TASK: Final = 20


def stack_dump() -> str:
    """Return the stacks of the event loop's tasks and of all threads.

    Java dumps its threads. Here async listeners run in tasks, and plain listeners in worker threads.
    """
    text = io.StringIO()
    for task in sorted(asyncio.all_tasks(), key=lambda task: task.get_name()):
        text.write(f"{task.get_name()} {_name_of(task)}\n")
        for frame in task.get_stack(limit=_FRAMES_PER_TASK):
            text.write(_line(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_qualname))
        text.write("\n")
    names: Mapping[int | None, str] = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, innermost in sys._current_frames().items():
        text.write(f"thread {names.get(ident, '?')} TID: {ident}\n")
        for summary in traceback.extract_stack(innermost, limit=_FRAMES_PER_TASK):
            text.write(_line(summary.filename, summary.lineno, summary.name))
        text.write("\n")
    return text.getvalue()[:_MAX_STACK_CHARACTERS]


def _name_of(task: asyncio.Task[Any]) -> str:
    coroutine = task.get_coro()
    return str(getattr(coroutine, "__qualname__", coroutine))


def _line(file: str, number: int | None, function: str) -> str:
    return f"  {file}:{number} {function}\n"
