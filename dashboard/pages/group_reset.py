"""The reset of a group: choose where it goes, see what would happen to each queue, and confirm it."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.responses import RedirectResponse, Response

from rewindmq.client.admin.watched_reset.run import MAX_TIMES
from rewindmq.dashboard.data.reset_previews import (
    AIMS,
    MAX_QUEUES,
    Previewed,
    pack_expected,
    preview_of,
    target_of,
    target_of_expected,
    unpack_expected,
)
from rewindmq.dashboard.resets.service import Confirmed, Refused
from rewindmq.dashboard.web.numbers import milliseconds, number_below
from rewindmq.dashboard.web.page import Page, Visit
from rewindmq.protocol.errors import ClientError
from rewindmq.protocol.names import RETRY_GROUP_TOPIC_PREFIX
from rewindmq.protocol.reset_mode import ResetMode

# The mode that a form may ask for, and what it says of it.
MODES: Final = {
    "": "as the brokers are configured",
    ResetMode.CLASSIC.value: "classic: consumers move themselves, 10 s later (RewindMQ)",
    ResetMode.SERVER.value: "server: brokers store the targets at once (RewindMQ)",
    ResetMode.FENCED.value: "fenced: brokers refuse late commits, too (RewindMQ)",
}


async def show(visit: Visit) -> Response:
    """Show the form and, once it names topic and target, the preview."""
    return await _page(visit)


async def confirm(visit: Visit) -> Response:
    """Reset the group if the form names it and nothing has moved since its preview; lead to the proof."""
    group = visit.path("group")
    # Browsers drop the ends of a text only in some fields.
    if visit.form.get("name", "").strip() != group:
        return await _page(visit, Refused(f"You typed another name than {group}."), 422)
    try:
        confirmed = _confirmed(visit, group)
    except ClientError as error:
        return await _page(visit, Refused(f"{error}."), 400)
    outcome = await visit.resets.confirm(confirmed)
    if isinstance(outcome, Refused):
        return await _page(visit, outcome, 409)
    return RedirectResponse(f"/resets/{outcome.id}", 303)


def _confirmed(visit: Visit, group: str) -> Confirmed:
    """Return what the form asks for.

    Raises:
        ClientError: a field is wrong; the text says what to do.
    """
    expected = unpack_expected(visit.form.get("expected", ""), group)
    repairs = number_below(visit.form.get("repairs", "").strip() or "0", MAX_TIMES + 1)
    if repairs is None:
        raise ClientError(f"Lost queues can be reset again 0 to {MAX_TIMES} times")
    return Confirmed(
        expected,
        target_of_expected(expected),
        repairs,
        as_group=expected.as_group if expected.timestamp is None else "",
    )


async def _page(visit: Visit, refused: Refused | None = None, status: int = 200) -> Response:
    group, topic, to = visit.path("group"), visit.query("topic").strip(), visit.query("to")
    # At the same time, so that a broker that hangs holds the page up once.
    found, queues = await asyncio.gather(_preview(visit, group, topic, to), visit.source.group_queues(group))
    rows = queues.value.rows if queues.value else {}
    topics = sorted({queue.topic for queue in rows if not queue.topic.startswith(RETRY_GROUP_TOPIC_PREFIX)})
    preview = found.preview
    if refused is None:
        status = 404 if queues.is_absent and preview is None and found.status == 200 else found.status
    may_confirm = preview is not None and len(preview.queues) <= MAX_QUEUES
    return await visit.render_large(
        "reset.html",
        status,
        title=group,
        topics=topics,
        topic=topic or (topics[0] if len(topics) == 1 else ""),
        to=to if to in AIMS else "earliest",
        at=milliseconds(visit.query("at")),
        ago=visit.query("ago"),
        as_group=visit.query("as").strip(),
        aims=AIMS,
        preview=preview,
        problem=found.problem,
        of_group=queues,
        rows=preview.queues[:MAX_QUEUES] if preview else (),
        refused=refused,
        expected=pack_expected(preview, visit.query("as").strip()) if preview and may_confirm else None,
        running=visit.resets.running_id(group, preview.topic) if preview else None,
        modes=MODES,
        mode=visit.query("mode"),
        max_repairs=MAX_TIMES,
        form=visit.form,
    )


async def _preview(visit: Visit, group: str, topic: str, to: str) -> Previewed:
    """Return the preview that the query asks for; neither preview nor problem if it asks for none."""
    if not topic and not to:
        return Previewed(None)
    if not topic or not to:
        return Previewed(None, "Choose both, a topic and where the group goes.", 400)
    if (asked := visit.query("mode")) not in MODES:
        return Previewed(None, f"Choose one of the modes {', '.join(filter(None, MODES))}, or none.", 400)
    mode = ResetMode(asked) if asked else None
    if to == "group":
        other = visit.query("as").strip()
        if not other:
            return Previewed(None, "Enter the group whose offsets this group is to take.", 400)
        return await preview_of(visit.source, group, topic, other, mode)
    now_ms = visit.source.runtime.clock.now_ms()
    try:
        target = target_of(to, milliseconds(visit.query("at")), visit.query("ago"), now_ms)
    except ClientError as error:
        return Previewed(None, f"{error}.", 400)
    return await preview_of(visit.source, group, topic, target, mode)


PAGES = (
    Page("/groups/{group}/reset", show, "Reset"),
    Page("/groups/{group}/reset", confirm, "Reset", methods=("POST",)),
)
