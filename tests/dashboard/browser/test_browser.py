"""The dashboard in a real headless Chromium, beside a cluster with consumers."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import pytest
from playwright.async_api import ConsoleMessage, Page, Response, expect

from rewindmq import Message
from rewindmq.dashboard.web.page import DashboardSettings
from tests.dashboard.browser.conftest import Shop
from tests.dashboard.site import dashboard
from tools.dashboard.page_checks import faults_in_every_view, faults_of

pytestmark = pytest.mark.asyncio(loop_scope="session")
PATHS = (
    "/",
    "/brokers/broker-a/0",
    "/topics",
    "/topics?q=nothing-has-this-name",
    "/topics/orders",
    "/topics/orders/groups",
    "/topics/orders/send",
    "/topics/orders/messages",
    "/topics/orders/messages?by=key&q=order-7",
    "/topics/orders/messages?by=id",
    "/topics/orders/messages?by=time&at=1700000000000",
    "/topics/orders/messages?by=queue&broker=broker-a&queue=0&offset=0",
    "/topics/orders/messages/broker-a/0/0",
    "/topics/absent",
    "/absent",
    "/groups",
    "/groups/reports",
    "/groups/shipping",
    "/groups/shipping/consumers",
    "/groups/shipping/stacks",
    "/groups/mailer/dead-letters",
    "/groups/mailer/dead-letters?letter=broker-a/0/999",
    "/groups/reports/fenced",
    "/groups/reports/compare",
    "/groups/reports/compare?with=billing",
    "/groups/reports/compare?with=reports",
    "/groups/reports/reset",
    "/groups/reports/reset?topic=orders&to=earliest",
    "/groups/reports/reset?topic=orders&to=ago&ago=2h",
    "/groups/reports/reset?topic=absent&to=latest",
    "/groups/absent/dead-letters",
    "/groups/reports/reset?topic=orders&to=time&at=soon",
    "/resets",
    "/resets/absent",
    "/races",
    "/races/R1",
    "/races/R1?case=absent",
    "/races/R1?case=v49/classic&seed=1",
    "/groups/reports/reset?topic=orders&to=group&as=billing",
)


@asynccontextmanager
async def opened(shop: Shop, path: str, **options: Any) -> AsyncIterator[Page]:
    """Open a page; fail if its script raised, or the browser refused something of it."""
    context = await shop.browser.new_context(**options)
    page = await context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda line: complaints.append(line.text) if _is_fault(line) else None)
    page.on("response", lambda answer: complaints.append(answer.url) if _is_missing(answer) else None)
    await page.goto(shop.url + path)
    yield page
    await context.close()
    assert complaints == []


def _is_fault(line: ConsoleMessage) -> bool:
    # Chromium logs every status from 400 on, and a page about a topic that is not there has one.
    return line.type == "error" and not line.text.startswith("Failed to load resource")


def _is_missing(answer: Response) -> bool:
    """Return True if a part of a page is not there."""
    return answer.status >= 400 and answer.request.resource_type != "document"


async def test_every_page_has_labels_contrast_focus_and_fits_the_screen(shop: Shop) -> None:
    """In light and dark, on wide and narrow screens."""
    async with opened(shop, "/groups/shipping/consumers") as page:
        client = await page.locator("tbody a").first.get_attribute("href")
        faults = {}
        for path in (*PATHS, str(client)):
            await page.goto(shop.url + path)
            if found := await faults_in_every_view(page):
                faults[path] = found
        assert not faults, "\n".join(f"{path}: {fault}" for path, found in faults.items() for fault in found)


async def test_pages_that_answer_a_form_and_those_of_a_visitor_who_may_do_less_have_no_fault(
    shop: Shop,
) -> None:
    async with opened(shop, "/groups/reports/reset?topic=orders&to=earliest") as page:
        await page.get_by_label("Type the group's name").fill("another")
        await page.get_by_role("button", name="Reset the group and watch it").click()
        await expect(page.get_by_role("alert")).to_contain_text("Nothing was reset.")
        assert await faults_in_every_view(page) == []
        await page.goto(f"{shop.url}/groups/mailer/dead-letters")
        # Without a choice nothing is sent.
        await page.get_by_role("button", name="Send the chosen ones again").click()
        await expect(page.get_by_role("alert")).to_contain_text("No dead letter is chosen")
        assert await faults_in_every_view(page) == []
    settings = DashboardSettings("form-token", read_only=True, token="a-token")
    async with (
        dashboard(shop.cluster.namesrv_address, settings) as site,
        opened(Shop(shop.browser, shop.cluster, site.url), "/topics/orders/send") as page,
    ):
        assert await faults_in_every_view(page, fewest_texts=3) == []
        await page.get_by_label("Token").fill("wrong")
        await page.get_by_role("button", name="Enter").click()
        await expect(page.get_by_role("alert")).to_have_text("That is not the dashboard's token.")
        assert await faults_in_every_view(page, fewest_texts=3) == []
        await page.get_by_label("Token").fill("a-token")
        await page.get_by_role("button", name="Enter").click()
        await page.wait_for_url("**/topics/orders/send")
        for path in ("", "/groups/reports/reset?topic=orders&to=earliest", "/groups/mailer/dead-letters"):
            await page.goto(site.url + path)
            await expect(page.locator("header .badge")).to_have_text("read-only")
            assert await faults_in_every_view(page) == [], path


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_colours_follow_the_viewers_system(shop: Shop, scheme: Literal["light", "dark"]) -> None:
    async with opened(shop, "/", color_scheme=scheme) as page:
        ground = await page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(map(int, re.findall(r"\d+", ground)[:3])) / 3
    assert brightness > 200 if scheme == "light" else brightness < 50


async def test_the_checks_find_what_they_look_for(shop: Shop) -> None:
    async with opened(shop, "/topics") as page:
        await page.evaluate(
            """document.querySelector("main").innerHTML =
            '<input name=a placeholder=hint><label>seen<input id=bare></label><a href="/"></a>' +
            '<nav aria-label=N></nav><nav aria-label=N></nav><svg><text y=9>drawn</text></svg>' +
            '<p id=x>text</p><p class=faint>faint</p><h4 id=x>low</h4><pre id=wide>w</pre>' +
            '<table class=small><tr><td class=thin>squeezed</table>'"""
        )
        for style in (
            "input { border-color: rgb(240, 240, 240) }",
            "input::placeholder { color: rgb(220, 220, 220) }",
            "#bare:focus { outline: none }",
            "svg text { fill: rgb(210, 210, 210) }",
            ".faint { opacity: 0.3 }",
            ".small { width: 20px }",
            ".thin { overflow-wrap: anywhere; white-space: normal; padding: 0 }",
        ):
            await page.evaluate(
                "text => { const sheet = new CSSStyleSheet(); sheet.replaceSync(text);"
                " document.adoptedStyleSheets.push(sheet); }",
                style,
            )
        await page.evaluate("document.querySelector('p').style.color = 'rgb(200, 200, 200)'")
        await page.evaluate("document.querySelector('pre').style.width = '5000px'")
        found = " ".join(await faults_of(page))
    for fault in (
        "no label: <input name",
        "no name",
        "contrast 1.55: <p id",
        "not one h1",
        "skips a level",
        "two elements",
        "two landmarks are named N",
        "wider",
        "frame's contrast",
        "placeholder's contrast",
        'shows no focus: <input id="bare"',
        "<text",
        '<p class="faint"',
        'squeezed: <td class="thin"',
    ):
        assert fault in found, (fault, found)


async def test_the_keyboard_reaches_everything(shop: Shop) -> None:
    async with opened(shop, "/") as page:
        await page.keyboard.press("Tab")
        await expect(page.locator(".skip")).to_be_focused()
        await page.keyboard.press("g")
        await page.keyboard.press("t")
        await page.wait_for_url("**/topics")
        await page.keyboard.press("/")
        await expect(page.get_by_label("Name contains")).to_be_focused()
        await page.keyboard.type("ord")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**q=ord*")
        assert await page.locator(".names a").all_text_contents() == ["orders"]
        await page.locator(".names a").focus()
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/topics/orders")


async def test_the_slash_goes_to_a_search_field_and_to_no_other(shop: Shop) -> None:
    async with opened(shop, "/topics/orders/messages?by=key") as page:
        await page.keyboard.press("/")
        await expect(page.get_by_label("Key")).to_be_focused()
        await page.goto(f"{shop.url}/resets")
        await page.keyboard.press("/")
        await expect(page.get_by_label("Group or topic contains")).to_be_focused()
        # A page with fields, none of which searches.
        await page.goto(f"{shop.url}/topics/orders/messages?by=queue&broker=broker-a&queue=0&offset=0")
        await page.keyboard.press("/")
        await page.wait_for_url("**/topics#q")
        await expect(page.get_by_label("Name contains")).to_be_focused()


async def test_the_lag_of_a_group_rises_on_the_open_page(shop: Shop) -> None:
    async with opened(shop, "/groups/reports") as page:
        await expect(page.locator("dd").first).to_have_text("40 messages")
        async with shop.cluster.producer("more") as producer:
            await producer.send(Message("orders", b"one more", "paid"))
        await expect(page.locator("dd").first).to_have_text("41 messages")
        await expect(page.locator("svg.plot polyline")).to_be_visible(timeout=30_000)
        assert await page.locator("svg.spark").count() >= 8


async def test_a_message_is_found_by_its_key_and_shown(shop: Shop) -> None:
    async with opened(shop, "/topics/orders/messages") as page:
        await page.get_by_role("link", name="By key").click()
        await page.get_by_label("Key").fill("order-7")
        await page.keyboard.press("Enter")
        await page.locator("tbody a").click()
        await expect(page.locator("pre.body")).to_contain_text('"customer": "C-0049"')
        link = page.url
        await page.goto(link)
        await expect(page.locator("pre.body")).to_contain_text('"order": 7')
        async with page.expect_download() as download:
            await page.get_by_text("Download the body").click()
        assert (await (await download.value).path()).read_bytes().startswith(b'{"order": 7')


async def test_a_message_is_sent_from_the_page(shop: Shop) -> None:
    async with opened(shop, "/topics/invoices") as page:
        await page.get_by_role("link", name="Send").click()
        await page.get_by_label("Body").fill("from the page")
        await page.get_by_label("Keys").fill("typed")
        await page.get_by_role("button", name="Send one message").click()
        await expect(page.locator("pre.body")).to_have_text("from the page")


async def test_subscriptions_that_differ_and_dead_letters_are_shown(shop: Shop) -> None:
    async with opened(shop, "/groups/shipping") as page:
        await page.get_by_role("link", name="See who subscribed what").click()
        await expect(page.get_by_role("alert")).to_contain_text("orders")
        assert await page.locator(".differs code").all_text_contents() == ["paid", "paid || refunded"]
    async with opened(shop, "/groups/mailer") as page:
        await page.get_by_role("link", name="Dead letters").click()
        await page.locator("tbody a").first.click()
        await expect(page.locator("h2 .badge")).to_have_text("binary")
        await expect(page.locator("pre.body")).to_contain_text("00000000  00 01 02 03")


@pytest.mark.parametrize("has_script", [True, False])
async def test_a_dead_letter_is_sent_to_its_group_again(shop: Shop, has_script: bool) -> None:
    async with opened(shop, "/groups/mailer/dead-letters", java_script_enabled=has_script) as page:
        if has_script:
            await page.get_by_role("button", name="Choose all").click()
            assert await page.get_by_role("checkbox").first.is_checked()
            await page.get_by_role("button", name="Choose all").click()
        assert not await page.get_by_role("checkbox").first.is_checked()
        await page.get_by_role("checkbox").first.focus()
        await page.keyboard.press("Space")
        await page.get_by_role("button", name="Send the chosen ones again").click()
        await expect(page.get_by_role("status")).to_contain_text("1 of 1 sent again")
        assert await faults_of(page) == []
        await page.locator("tbody a").last.click()
        await expect(page.locator("pre.body")).to_contain_text("00000000  00 01 02 03")
        await expect(page.get_by_role("row", name="RETRY_TOPIC")).to_contain_text("payments")


async def test_two_groups_are_compared_and_one_may_go_to_where_the_other_is(shop: Shop) -> None:
    async with opened(shop, "/groups/billing") as page:
        await page.get_by_role("link", name="Compare").click()
        await page.wait_for_url("**/groups/billing/compare")
        await page.keyboard.press("/")
        await page.keyboard.type("reports")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/groups/billing/compare?with=reports*")
        await expect(page.locator("dd").first).to_contain_text("of 8")
        await page.get_by_role("link", name="billing to where reports is").click()
        # A classic reset has only a time, and the group's consumers run.
        await expect(page.locator("dd").first).to_have_text("0 messages")
        await page.get_by_label("Mode").select_option("server")
        await page.get_by_role("button", name="Preview").click()
        # Another test may have sent one more, which billing has consumed.
        await expect(page.locator("dd").first).to_have_text(re.compile("^4[01] messages$"))
        await expect(page.get_by_label("Other group")).to_have_value("reports")


async def test_a_group_is_led_from_its_lag_to_a_look_at_skipping_it(shop: Shop) -> None:
    async with opened(shop, "/groups/reports") as page:
        await page.locator("main").get_by_role("link", name="orders", exact=True).last.click()
        await page.wait_for_url("**/groups/reports/reset?topic=orders&to=latest")
        await expect(page.locator("dd").nth(1)).to_contain_text("messages")
        assert int((await page.locator("dd").nth(1).text_content() or "").split()[0]) >= 40


@pytest.mark.parametrize("has_script", [True, False])
async def test_a_race_is_chosen_played_and_played_with_the_next_seed(shop: Shop, has_script: bool) -> None:
    async with opened(shop, "/", java_script_enabled=has_script) as page:
        if has_script:
            await page.keyboard.press("g")
            await page.keyboard.press("l")
        else:
            await page.get_by_role("link", name="Races").click()
        await page.wait_for_url("**/races")
        await page.get_by_role("link", name="R4", exact=True).click()
        await page.get_by_label("Clients and mode").select_option("v49/classic")
        await page.get_by_label("Seed").fill("7")
        await page.keyboard.press("Enter")
        await expect(page.locator("#verdict")).to_contain_text("lost")
        await expect(page.get_by_role("img", name="steps of each process over time")).to_be_visible()
        await page.wait_for_load_state()
        # The lanes have their colours only if the page's policy lets their style in.
        stroke = "getComputedStyle(document.querySelector('figure.lanes path.stored')).stroke"
        assert await page.evaluate(stroke) not in ("none", "rgb(0, 0, 0)")
        await page.get_by_role("link", name="Play the next seed").click()
        await page.wait_for_url("**seed=8")
        await expect(page.get_by_label("Seed")).to_have_value("8")
        await expect(page.locator("#verdict")).to_be_visible()


async def test_times_are_in_the_viewers_zone(shop: Shop) -> None:
    path = "/topics/orders/messages?by=time&at=1700000000000"
    async with opened(shop, path, timezone_id="Asia/Tokyo", locale="en-GB") as page:
        assert await page.get_by_label("Stored at or after").input_value() == "2023-11-15T07:13:20"
        await expect(page.locator("footer")).to_contain_text("Asia/Tokyo")
        shown = page.locator("time").first
        stored = int(await shown.get_attribute("data-ms") or 0)
        await page.get_by_label("Stored at or after").fill("2023-11-15T07:13:21")
        await page.get_by_role("button", name="Find").click()
        await page.wait_for_url("**at=1700000001000*")
    assert stored > 1_700_000_000_000


async def test_without_script_the_pages_show_utc_and_forms_work(shop: Shop) -> None:
    async with opened(shop, "/topics", java_script_enabled=False) as page:
        await page.get_by_label("Name contains").fill("orders")
        await page.get_by_role("button", name="Find").click()
        await page.locator(".names a").click()
        await expect(page.locator("time").first).to_contain_text("UTC")
        await page.get_by_role("link", name="Messages").click()
        await page.locator("tbody a").first.click()
        await expect(page.locator("pre.body")).to_be_visible()


@pytest.mark.parametrize("has_script", [True, False])
async def test_a_reset_is_previewed_from_a_form_and_its_address_leads_to_it_again(
    shop: Shop, has_script: bool
) -> None:
    async with opened(shop, "/groups/reports", java_script_enabled=has_script) as page:
        await page.get_by_role("link", name="Reset", exact=True).click()
        await expect(page.get_by_label("Topic")).to_have_value("orders")
        fields = {"time": "Time", "ago": "Before now", "group": "Other group"}
        for aim in ("earliest", "time", "group", "latest", "ago"):
            await page.get_by_label("Go to").select_option(aim)
            # A field that the choice does not need is not shown, without script, too.
            for each, label in fields.items():
                await expect(page.get_by_label(label)).to_be_visible(visible=each == aim)
        await expect(page).to_have_title("reports · Reset · RewindMQ")
        await page.get_by_label("Before now").fill("2h")
        await page.get_by_role("button", name="Preview").click()
        await expect(page.locator("dd").first).to_have_text("20 messages")
        await page.get_by_role("link", name="Link to this very time").click()
        await expect(page.get_by_label("Go to")).to_have_value("time")
        await page.goto(page.url)
        await expect(page.locator("dd").first).to_have_text("20 messages")
