"""The laboratory's races are played from pages, over real HTTP and in real processes, without a cluster."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest

from rewindmq import AdminClient
from rewindmq.dashboard.app import make_app
from rewindmq.dashboard.data.cluster_source import ClusterSource
from rewindmq.dashboard.races import race_runs
from rewindmq.dashboard.races.race_run import RaceCase
from rewindmq.dashboard.races.race_runs import BusyError, NotPlayedError, RaceRuns
from rewindmq.dashboard.serving import serving
from rewindmq.dashboard.web.page import DashboardSettings
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.remoting.runtime import system_runtime
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.scenario.catalogue import SCENARIOS
from tests.dashboard.site import HOSTS, Site, dashboard

SECONDS: Final = 30.0
CASE: Final = RaceCase("R1", Profile.V49, ResetMode.CLASSIC, 1)
R1: Final = "/races/R1?case=v49/classic&seed=1"


class Stuck:
    """A worker that never ends; a pipe shows its begin and its end."""

    def __init__(self, folder: Path) -> None:
        self._pipe = folder / "pipe"
        os.mkfifo(self._pipe)
        program = "import sys, time; out = open(sys.argv[1], 'w'); print('here', file=out, flush=True);"
        self.worker = ("-c", f"{program} time.sleep(1000)", str(self._pipe))

    async def begun(self) -> Callable[[], Awaitable[str]]:
        """Wait for the begin; return what waits for the end, and returns "" then."""
        stream = await asyncio.wait_for(asyncio.to_thread(open, self._pipe), SECONDS)
        assert await asyncio.to_thread(stream.readline) == "here\n"

        async def ended() -> str:
            with stream:
                return await asyncio.to_thread(stream.read)

        return ended


@asynccontextmanager
async def stuck_site(stuck: Stuck) -> AsyncIterator[Site]:
    """Serve a dashboard whose races never end."""
    settings = DashboardSettings("form-token", hosts=HOSTS)
    async with AdminClient("127.0.0.1:1") as admin:
        races = RaceRuns(admin.runtime.timers, stuck.worker)
        app = make_app(ClusterSource(admin), settings, races=races)
        async with serving(app, "127.0.0.1", 0) as url:
            yield Site(url, settings)


async def test_a_race_is_played_and_shown_with_lanes_and_verdict() -> None:
    async with dashboard("127.0.0.1:1") as site:
        described = await site.get("/races/R1")
        assert "<svg" not in described.text
        assert '<option value="v49/classic" selected>v49, classic: L1</option>' in described.text
        first = await site.get(R1)
        assert first.status == 200
        assert '<span class="badge lost" id="verdict">' in first.text
        assert "<dt>Outcome</dt><dd>L1</dd>" in first.text
        assert re.search(r"<b>L1</b> at \d+\.\d{3} s: queue 0 of broker-a", first.text)
        assert first.text.count("<svg") == 2
        assert "&lt;svg" not in first.text
        kept = await site.get("/races/r1?case=epoch/fenced&seed=1")
        assert "<dt>Outcome</dt><dd>kept</dd>" in kept.text
        assert "Every law holds" in kept.text


async def test_the_list_names_every_race_and_a_wrong_address_says_what_to_do() -> None:
    async with dashboard("127.0.0.1:1") as site:
        page = (await site.get("/races")).text
        assert re.findall(r'href="/races/([^"]+)"', page) == list(SCENARIOS)
        for path, status, sentence in (
            ("/races/R99", 404, "There is no race &#39;R99&#39;"),
            ("/races/%3Cb%3E", 404, "There is no race &#39;&lt;b&gt;&#39;"),
            ("/races/R1?case=v1/classic&seed=1", 404, "This race has no such case"),
            ("/races/R1?seed=-1", 400, "A seed is a number from 0 to 2,147,483,647."),
            ("/races/R1?seed=2147483648", 400, "A seed is a number from 0"),
        ):
            answered = await site.get(path)
            assert (answered.status, sentence in answered.text) == (status, True), path


async def test_one_race_is_played_at_a_time_and_other_pages_stay_alive(tmp_path: Path) -> None:
    stuck = Stuck(tmp_path)
    async with stuck_site(stuck) as site:
        first = asyncio.create_task(site.get(R1))
        ended = await stuck.begun()
        second = await site.get(R1)
        assert (second.status, "One race is played at a time" in second.text) == (503, True)
        assert (await site.get("/races")).status == 200
        assert not first.done()
    # The stop of the dashboard ends the race.
    assert await ended() == ""
    await first


async def test_a_race_ends_with_the_visit_of_who_asked_for_it(tmp_path: Path) -> None:
    stuck = Stuck(tmp_path)
    async with stuck_site(stuck) as site:
        _, writer = await asyncio.open_connection("127.0.0.1", urlsplit(site.url).port)
        writer.write(f"GET {R1} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        ended = await stuck.begun()
        writer.close()
        await writer.wait_closed()
        assert await asyncio.wait_for(ended(), SECONDS) == ""


async def test_a_race_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race_runs, "LIMIT_SECONDS", 0.2)
    runs = RaceRuns(system_runtime().timers, ("-c", "import time; time.sleep(1000)"))
    with pytest.raises(NotPlayedError, match="ended, at the latest after"):
        await runs.play(CASE)


async def test_a_worker_that_fails_is_a_sentence_and_its_text_is_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    runs = RaceRuns(system_runtime().timers, ("-c", "raise SystemExit('no reason')"))
    for _ in range(2):
        with pytest.raises(NotPlayedError, match="the dashboard's log says how"):
            await runs.play(CASE)
    assert "no reason" in caplog.text


async def test_a_run_that_was_just_played_is_shown_while_another_one_runs(tmp_path: Path) -> None:
    runs = RaceRuns(system_runtime().timers)
    played = await runs.play(CASE)
    assert played.losses == ["L1"]
    stuck = Stuck(tmp_path)
    runs._worker = stuck.worker
    other = asyncio.create_task(runs.play(RaceCase("R1", Profile.V49, ResetMode.CLASSIC, 2)))
    ended = await stuck.begun()
    assert await runs.play(CASE) is played
    with pytest.raises(BusyError):
        await runs.play(RaceCase("R1", Profile.V49, ResetMode.CLASSIC, 3))
    other.cancel()
    await asyncio.wait((other,))
    assert other.cancelled()
    assert await ended() == ""
    runs._worker = ("-c", "raise SystemExit(1)")
    with pytest.raises(NotPlayedError):
        await runs.play(RaceCase("R1", Profile.V49, ResetMode.CLASSIC, 3))


@pytest.mark.slow
async def test_races_of_every_kind_have_their_documented_outcome_on_their_page() -> None:
    async with dashboard("127.0.0.1:1") as site:
        for race in ("SEED", "R4", "R8-KILL", "R11", "BROADCAST", "S1"):
            page = await site.get(f"/races/{race}?seed=1")
            assert (page.status, page.text.count("<svg")) == (200, 2), race
            assert "not the documented one" not in page.text, race
            assert "could not be played" not in page.text, race
        first = await site.get(R1)
    # The address leads to the same run at another dashboard, also at one that is read-only.
    async with dashboard("127.0.0.1:1", DashboardSettings("form-token", read_only=True, hosts=HOSTS)) as site:
        again = await site.get(R1)
    assert again.text.partition("<main")[2] == first.text.partition("<main")[2]
