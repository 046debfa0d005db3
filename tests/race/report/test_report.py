"""Reports: self-contained, readable for long histories, and exact about the offending steps."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest

from rewindmq.protocol.points import Point
from rewindmq.protocol.profile import Profile
from rewindmq.protocol.reset_mode import ResetMode
from rewindmq.race.checker import Law, Verdict, judge
from rewindmq.race.errors import RaceError
from rewindmq.race.history import Event, History, Lab
from rewindmq.race.play.run import Plan, play_simulated
from rewindmq.race.report import (
    ReportedRun,
    ReportMeta,
    render_comparison,
    render_html,
    render_svg,
    render_text,
    write_report,
)
from rewindmq.race.report.axis import TimeAxis
from rewindmq.race.report.drawing import Drawing
from rewindmq.race.report.labels import CHARACTER_PIXELS, Box
from rewindmq.race.report.scene import make_scene
from rewindmq.race.scenario import pull_in_flight
from rewindmq.race.scenario.scenario import Loss
from rewindmq.race.stage.settle import settle
from rewindmq.race.stage.stage import Stage
from tests.race.stages import simulate

META = ReportMeta("R1: a pull in flight", {"profile": "v49", "mode": "classic"}, "What happens & why.")


async def lose_a_reset(stage: Stage) -> None:
    await pull_in_flight.SCENARIO.play(stage)
    await settle(stage)


@pytest.fixture(scope="module")
def lost() -> ReportedRun:
    """A simulated run in which the stored offset runs ahead of the replay."""
    history = simulate(lose_a_reset)
    verdict = judge(history)
    assert verdict.losses == {Loss.L1}
    return ReportedRun(history, verdict, META)


def without_frames(run: ReportedRun) -> ReportedRun:
    history = History(event for event in run.history if not str(event.kind).startswith("frame"))
    return ReportedRun(history, judge(history), run.meta)


def from_frames(run: ReportedRun) -> ReportedRun:
    """The same run without the events that clients and brokers record themselves."""
    history = History(
        event
        for event in run.history
        if isinstance(event.kind, Lab) and (event.kind is not Lab.STORED_OFFSET)
    )
    return ReportedRun(history, judge(history), run.meta)


class Page(HTMLParser):
    """Checks that every element is closed; collects the tags and the text."""

    VOID = frozenset({"meta", "line", "circle", "rect", "path"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


def test_the_page_is_self_contained(lost: ReportedRun) -> None:
    text = render_html(*lost)
    page = Page(text)
    assert not {tag for tag, _ in page.tags} & {"script", "link", "img", "iframe", "object", "use"}
    assert not {name for _, attributes in page.tags for name in attributes} & {"src", "onclick", "onload"}
    assert "http" not in text
    assert "@import" not in text
    assert set(re.findall(r"url\(([^)]*)\)", text)) <= {
        f"#head-{tone}" for tone in ("reset", "commit", "pull", "step", "end", "bad")
    }
    assert "prefers-color-scheme:dark" in text


def test_the_page_says_what_was_lost_and_where(lost: ReportedRun) -> None:
    page = Page(render_html(*lost))
    for words in (
        "The reset was lost: L1",
        lost.verdict.violations[0].text,
        "profile",
        "v49",
        "What happens & why.",
    ):
        assert words in page.words
    (arrow,) = [
        attributes
        for tag, attributes in page.tags
        if tag == "path" and attributes.get("class") == "arrow bad"
    ]
    assert arrow["marker-end"] == "url(#head-bad)"
    for lane in ("admin", "broker-a", "consumer-A"):
        assert lane in page.words


def test_every_step_that_broke_a_law_is_marked_with_the_number_of_its_finding() -> None:
    outcome = play_simulated(Plan("R4", Profile.V49, ResetMode.CLASSIC), 1)
    stored, twins, redelivered = outcome.verdict.violations
    assert [stored.law, twins.law, redelivered.law] == [Law.STORED, Law.ONE_CHAIN, Law.REDELIVERED]
    scene = make_scene(outcome.history, outcome.verdict)
    # A message that was not redelivered has no offending step.
    assert [(offence.index, offence.number) for offence in scene.offences] == [
        (stored.index, 1),
        (twins.index, 2),
    ]
    page = render_html(outcome.history, outcome.verdict, META)
    assert re.findall(r'class="offence-number"[^>]*>(\d)<', page) == ["1", "2", "1"]  # the last: the legend
    assert page.count('<tr class="bad">') == 2
    text = render_text(outcome.history, outcome.verdict, META, 80)
    marked = [line.split()[1] for line in text.splitlines() if line.startswith(">>")]
    assert marked == [f"{stored.at:.3f}", f"{twins.at:.3f}"]


@pytest.mark.parametrize("width", [60, 70, 80, 100, 120])
def test_a_label_without_room_is_cut_visibly_and_never_inside_an_offset(width: int) -> None:
    outcome = play_simulated(Plan("R4", Profile.V49, ResetMode.CLASSIC), 1)
    text = render_text(outcome.history, outcome.verdict, META, width)
    _, table = text.split("stored  replay", 1)
    numbers = {int(number) for number in re.findall(r"→(\d+)", table)}
    assert numbers <= {7, 12}
    assert re.search(r"found(…| →12)", table)


def test_names_from_a_history_are_text_and_not_markup() -> None:
    name = '<script>alert("x")</script>'
    events = [Event(0.0, name, Lab.PROCESS_STARTED), Event(1.0, name, Lab.PROCESS_KILLED, {"a": name})]
    text = render_html(History(events), Verdict(frozenset(), ()), ReportMeta(name, {name: name}, name))
    assert "<script" not in text
    assert name in Page(text).words


def test_control_characters_of_a_history_are_escaped_in_every_form(lost: ReportedRun) -> None:
    evil = "\nFORGED\r\x1b[2J\u202e\x9b31m\u2028"
    events = [replace(event, process=f"{event.process}{evil}") for event in lost.history]
    events.append(Event(events[-1].at, "lab", Lab.NOTE, {"text": evil}))
    history = History(events)
    meta = ReportMeta(f"R1{evil}", {"client": evil}, evil)
    for text in (
        render_text(history, lost.verdict, meta),
        render_html(history, lost.verdict, meta),
        render_svg(history, lost.verdict, meta),
    ):
        assert all(character.isprintable() or character == "\n" for character in text)
        assert not re.search(r"^\s*FORGED", text, re.MULTILINE)
        assert r"\x1b[2J" in text


def test_an_empty_history_has_a_page_and_a_text() -> None:
    nothing = (History(), Verdict(frozenset(), ()), ReportMeta("nothing"))
    assert "Every law holds" in render_html(*nothing)
    assert "The reset was kept" in render_text(*nothing)


def test_points_alone_give_the_same_arrows_as_points_and_frames(lost: ReportedRun) -> None:
    def arrows(run: ReportedRun) -> list[tuple[str, str, str]]:
        scene = make_scene(run.history, run.verdict)
        return [(arrow.source, arrow.target, arrow.label) for arrow in scene.arrows]

    assert arrows(without_frames(lost)) == arrows(lost)
    assert ("admin", "broker-a", "reset") in arrows(lost)
    assert ("broker-a", "consumer-A", "notification") in arrows(lost)
    assert ("consumer-A", "broker-a", "commit 0") in arrows(lost)
    assert ("broker-a", "consumer-A", "late empty →10") in arrows(lost)


def test_frames_alone_have_a_report_too(lost: ReportedRun) -> None:
    run = from_frames(lost)
    scene = make_scene(run.history, run.verdict)
    labels = {(arrow.source, arrow.target, arrow.label) for arrow in scene.arrows}
    assert ("broker-a", "consumer-A", "notification") in labels
    assert ("consumer-A", "broker-a", "commit 0") in labels
    # Pulls carry offsets too. An offset that is repeated every 5 s is shown once.
    commits = [arrow.label.rpartition(" ") for arrow in scene.arrows if arrow.target == "broker-a"]
    assert {name for name, _, _ in commits} == {"pull commit", "commit"}
    assert all(before != after for (_, _, before), (_, _, after) in pairwise(commits))
    Page(render_html(*run))


# Where labels go.

LABEL = re.compile(r'<text class="label (\w+)" x="([-\d.]+)" y="([-\d.]+)">([^<]*)</text>')


def busy(events: int) -> ReportedRun:
    """Many consumers, messages and commits in a short time."""

    def add(at: float, process: str, kind: Any, **details: Any) -> None:
        story.append(Event(at, process, kind, {"topic": "T", "group": "G", **details}))

    story: list[Event] = []
    place = {"broker_name": "broker-a", "queue_id": 0}
    add(0.0, "admin", Lab.RESET_STARTED, mode="fenced", offset=0, **place)
    add(0.1, "broker-a", Point.OFFSET_RESET, queue_id=0, offset=0)
    add(0.2, "admin", Lab.RESET_ACKNOWLEDGED, mode="fenced", targets=[["broker-a", 0, 0]])
    for number in range(events // 5):
        at = 1.0 + number * 0.01
        who = f"consumer-{'ABCDEF'[number % 6]}"
        offset = {"offset": number, **place, "chain": 1}
        add(at, who, Point.PULL_SENT, **offset)
        add(at, who, Point.QUEUE_ADDED, **offset)
        add(at, who, Point.LISTENER_CALLED, **offset, offsets=[number])
        add(at, who, Point.COMMIT_SENT, **offset)
        add(
            at + 0.002,
            "broker-a",
            Point.COMMIT_RECEIVED,
            queue_id=0,
            offset=number,
            stored=number - 1,
            carrier=15,
        )
    history = History(story)
    return ReportedRun(history, judge(history), META)


def test_labels_do_not_overlap_however_many_events_there_are() -> None:
    run = busy(600)
    scene = make_scene(run.history, run.verdict)
    assert len(scene.arrows) > 100
    found = LABEL.findall(Drawing(scene).html())
    assert len(found) > 50
    boxes = [
        Box(float(x), float(y) - 9, float(x) + len(text) * CHARACTER_PIXELS, float(y))
        for tone, x, y, text in found
        if tone != "bad"
    ]
    assert not [pair for pair in combinations(boxes, 2) if pair[0].overlaps(pair[1])]
    # The offending step has its label all the same.
    assert [tone for tone, *_ in found].count("bad") == 1


def test_every_step_around_the_apply_pass_has_its_label(lost: ReportedRun) -> None:
    labels = [match[4] for match in LABEL.finditer(render_html(*lost))]
    for step in ("reset to 0", "dropped", "wait over", "in memory 0"):
        assert labels.count(step) == 1, step
    assert labels.count("queue at 0") == 2


def test_no_label_is_clipped(lost: ReportedRun) -> None:
    html = Drawing(make_scene(lost.history, lost.verdict)).html()
    width = float(re.findall(r'<svg width="(\d+)"', html)[0])
    for _, x, _, text in LABEL.findall(html):
        assert float(x) >= 0
        assert float(x) + len(text) * CHARACTER_PIXELS <= width + 1


def test_the_picture_is_well_formed(lost: ReportedRun) -> None:
    for picture in re.findall(r"<svg.*?</svg>", Drawing(make_scene(lost.history, lost.verdict)).html()):
        ET.fromstring(picture)


def test_the_picture_is_self_contained(lost: ReportedRun) -> None:
    picture = ET.fromstring(render_svg(*lost))
    svg = "{http://www.w3.org/2000/svg}"
    assert picture.tag == f"{svg}svg"
    assert picture.findtext(f"{svg}title") == lost.meta.title
    assert "prefers-color-scheme:dark" in (picture.findtext(f"{svg}style") or "")
    kinds = {str(element.get("class")) for element in picture.iter()}
    assert {"lane", "stored", "progress", "target", "offence", "offence-point"} <= kinds


def test_time_never_runs_backwards_and_quiet_stretches_are_short() -> None:
    times = [0.0, 0.0, 0.001, 0.002, 10.0, 10.001, 300.0]
    axis = TimeAxis(times)
    places = [axis.place(time) for time in (-1.0, *times, 400.0)]
    assert places == sorted(places)
    assert (places[0], places[-1]) == (0.0, axis.width)
    assert [round(gap.seconds) for gap in axis.gaps()] == [10, 290]
    one, long = axis.place(0.002) - axis.place(0.001), axis.place(300) - axis.place(10.001)
    assert one < long < 5 * one
    assert axis.place(5) == pytest.approx((axis.place(0.002) + axis.place(10)) / 2, abs=1)


# The text.


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_the_text_keeps_its_width_and_marks_the_step(lost: ReportedRun, width: int) -> None:
    lines = render_text(*lost, width=width).splitlines()
    assert max(len(line) for line in lines) <= max(width, 60)
    (marked,) = [line for line in lines if line.startswith(">> ")]
    assert f"{lost.verdict.violations[0].at:.3f}" in marked
    assert marked.split()[-2:] == ["10", "4"]


def test_the_text_lists_the_steps_in_order(lost: ReportedRun) -> None:
    text = render_text(*lost, width=100)
    steps = [
        "reset to 0",
        "─ reset ─",
        "─ notification ─",
        "dropped",
        "wait over",
        "─ commit 0 ─",
        "late empty →10",
        ">> ",
    ]
    positions = [text.index(step) for step in steps]
    assert positions == sorted(positions)


# Several runs, and where they go.


def test_a_comparison_has_every_run(lost: ReportedRun) -> None:
    kept = ReportedRun(History(), Verdict(frozenset(), ()), ReportMeta("another"))
    page = Page(render_comparison("Three runs", [lost, kept, lost], "Side by side."))
    assert page.words.count("The reset was lost: L1") == 4
    assert page.words.count("The reset was kept") == 2
    links = {attributes["href"] for tag, attributes in page.tags if tag == "a"}
    assert links == {"#run-1", "#run-2", "#run-3"}
    charts = [attributes for tag, attributes in page.tags if attributes.get("class") == "small"]
    assert len(charts) == 3


def test_a_report_is_written_atomically(tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    write_report(path, "one")
    write_report(path, "two – more")
    assert path.read_text(encoding="utf-8") == "two – more"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(RaceError, match=r"cannot write .*none/r.html: No such file or directory"):
        write_report(tmp_path / "none" / "r.html", "x")
    with pytest.raises(RaceError, match="it is a directory"):
        write_report(tmp_path, "x")
    with pytest.raises(RaceError, match="cannot write"):
        write_report(path / "below-a-file", "x")
