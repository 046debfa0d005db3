"""The dashboard's pages and its safety, over real HTTP and a real cluster."""

import asyncio
import contextlib
import html
import http.client
import re
import threading
from urllib.parse import urlencode, urlsplit

import pytest

from rewindmq import ConsumeConcurrentlyStatus, LocalCluster, Message
from rewindmq.dashboard import app
from rewindmq.dashboard.web.page import DashboardSettings
from rewindmq.dashboard.web.paging import paging
from rewindmq.dashboard.web.safety import parse_form
from tests.dashboard.limits import limited_dashboard
from tests.dashboard.site import HOSTS, dashboard


async def test_the_pages_show_brokers_topics_queues_and_lag(cluster: LocalCluster) -> None:
    async with cluster.producer("p") as producer:
        await producer.send(Message("Orders", b"one"))
    async with dashboard(cluster.namesrv_address) as site:
        front = await site.get("/")
        assert front.status == 200
        assert all(f'href="/brokers/{name}/0"' in front.text for name in cluster.brokers)
        assert 'href="/topics/Orders"' in (await site.get("/topics?q=ord")).text
        queues = (await site.get("/topics/Orders")).text
        assert '<td class="n">1</td><td class="n">1</td><td><time data-ms=' in queues


async def test_a_group_beyond_the_end_of_a_queue_is_told_what_it_skips(cluster: LocalCluster) -> None:
    """So are groups of a topic that was deleted and created again at a broker of 4.x."""
    async with cluster.producer("p") as producer:
        queue = (await producer.send(Message("Renewed", b"one"))).message_queue
    consumer = cluster.push_consumer("Skipping")
    consumer.subscribe("Renewed")
    consumer.register_message_listener(lambda messages: ConsumeConcurrentlyStatus.CONSUME_SUCCESS)
    async with consumer:
        pass
    async with cluster.admin() as admin:
        for offset, says in (
            (1, None),
            (2, "The group will skip the next 1 message of "),
            (9, "The group will skip the next 8 messages of "),
        ):
            await admin.resets.reset(queue.topic, "Skipping", {queue: offset}, write=True, is_checked=True)
            async with dashboard(cluster.namesrv_address) as site:
                page = (await site.get("/groups/Skipping")).text
            assert (says is not None) == ("/groups/Skipping/reset?topic=Renewed&amp;to=earliest" in page)
            assert "will skip" not in page if says is None else says in re.sub("</?[bs][^>]*>", "", page)


async def test_what_is_not_there_has_the_status_404_and_says_what_to_do(cluster: LocalCluster) -> None:
    async with cluster.producer("p") as producer:
        _, broker, queue = (await producer.send(Message("Orders", b"one"))).message_queue
    list_of_topics = 'Check the name in the <a href="/topics">list of topics</a>'
    list_of_groups = 'Check the name in the <a href="/groups">list of groups</a>'
    async with dashboard(cluster.namesrv_address) as site:
        for path, advice in {
            "/topics/absent": list_of_topics,
            "/topics/absent/groups": list_of_topics,
            "/topics/absent/messages": list_of_topics,
            "/topics/absent/send": list_of_topics,
            "/groups/absent": list_of_groups,
            "/groups/absent/consumers": list_of_groups,
            "/groups/absent/fenced": list_of_groups,
            "/groups/absent/stacks": list_of_groups,
            "/groups/absent/dead-letters": list_of_groups,
            "/groups/absent/dead-letters?letter=broker-a/0/1": "There is no such dead letter",
            "/groups/absent/compare?with=other": "Group absent: no broker has this group.",
            "/groups/absent/reset": list_of_groups,
            "/groups/absent/reset?topic=Orders&to=latest": "Group absent is gone, or has another name",
            "/groups/absent/reset?topic=Gone&to=latest": "Topic Gone: no broker has this topic.",
            "/groups/absent/reset?topic=Orders&to=group&as=b": "The offsets of group b cannot be taken",
            # Names that no topic or group can have, and characters that no header may have.
            "/groups/%3Cb%3E": list_of_groups,
            "/groups/a%0D%0AX-Injected:1": list_of_groups,
            "/groups/%00": list_of_groups,
            f"/topics/{'t' * 300}": list_of_topics,
            "/topics/a%0D%0AX-Injected:1/messages": list_of_topics,
            "/races/R999": "There is no race",
            "/groups/absent/consumers/nobody@1/2": 'See <a href="/groups/absent/consumers">who is</a>',
            f"/topics/Orders/messages/{broker}/{queue}/99999": '<a href="/topics/Orders/messages">newest',
            "/topics/Orders/messages/absent/0/0": "broker absent does not serve topic Orders",
            "/brokers/absent/0": "knows no broker absent",
        }.items():
            page = await site.get(path)
            assert (page.status, page.headers["content-type"]) == (404, "text/html; charset=utf-8"), path
            assert advice in page.text, path
            assert "x-injected" not in page.headers
        download = await site.get(f"/topics/Orders/messages/{broker}/{queue}/99999/body")
        assert download.status == 404
        assert (await site.get("/topics/Orders")).status == 200


@pytest.mark.parametrize("path", ["/", "/topics", "/groups"])
async def test_a_name_server_that_is_gone_is_named_on_the_page(path: str) -> None:
    async with dashboard("127.0.0.1:1") as site:
        page = await site.get(path)
        assert page.status == 200
        assert "The name server did not answer" in page.text


async def test_a_broker_that_hangs_is_shown_so_and_the_rest_stays_alive(cluster: LocalCluster) -> None:
    hanging, alive = sorted(cluster.brokers)
    cluster.pause(hanging)
    try:
        async with limited_dashboard(cluster.namesrv_address) as site:
            site.limits.hold()
            asked = asyncio.ensure_future(site.get("/"))
            await site.limits.held()
            # The page waits for the broker as long as the test likes; other pages do not.
            assert (await site.get("/topics")).status == 200
            assert not asked.done()
            site.limits.release()
            page = await asked
            site.require_one_limit("/")
    finally:
        cluster.resume(hanging)
    assert page.text.count("no answer within 2 s") == 1
    assert f'<tr class="off"><td>DefaultCluster</td><td><a href="/brokers/{hanging}/0">' in page.text
    assert f'<tr><td>DefaultCluster</td><td><a href="/brokers/{alive}/0">' in page.text


@pytest.mark.slow
async def test_a_name_server_that_hangs_is_named_after_2_s(cluster: LocalCluster) -> None:
    async with limited_dashboard(cluster.namesrv_address) as site:
        assert "broker-a" in (await site.get("/")).text
        cluster.pause("namesrv")
        try:
            for path in (
                "/",
                "/topics",
                "/groups",
                "/topics/Orders",
                "/topics/Orders/send",
                "/groups/any",
                "/groups/any/dead-letters",
                "/groups/any/compare?with=other",
                "/groups/any/reset",
                "/groups/any/reset?topic=Orders&to=earliest",
                "/groups/any/reset?topic=Orders&to=group&as=other",
            ):
                page = await site.silent_page(path)
                assert "The name server did not answer: no answer within 2 s." in page, path
            site.limits.forget()
            sent = await site.post("/topics/Orders/send", {"csrf": "form-token", "body": "x"})
            site.require_one_limit("the form")
            assert "Nothing was sent: The name server did not answer: no answer within 2 s." in sent.text
        finally:
            cluster.resume("namesrv")


async def test_a_page_that_does_not_exist_says_so_and_leads_back() -> None:
    async with dashboard("127.0.0.1:1") as site:
        page = await site.get("/absent", Accept="text/html")
        assert (page.status, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
        assert "There is no such page" in page.text
        assert 'href="/topics"' in page.text


async def test_hostile_names_are_escaped() -> None:
    hostile = "<script>alert('1')</script>\"&"
    async with dashboard("127.0.0.1:1") as site:
        page = await site.get("/topics?q=%3Cscript%3Ealert('1')%3C/script%3E%22%26")
    assert hostile not in page.text
    assert "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&#34;&amp;" in page.text


async def test_characters_of_a_name_that_do_not_print_are_shown_as_escapes() -> None:
    async with dashboard("127.0.0.1:1") as site:
        page = await site.get("/groups/a%1B%5B31mb%E2%80%AEc/consumers")
    assert "<h1>a\\x1b[31mb\\u202ec</h1>" in page.text
    assert "\x1b" not in page.text
    assert "\u202e" not in page.text


async def test_forms_are_read_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A form of 16 MiB takes seconds, in which every other visitor would wait."""
    threads: list[int] = []

    def parse(body: bytes) -> dict[str, str]:
        threads.append(threading.get_ident())
        return parse_form(body)

    monkeypatch.setattr(app, "parse_form", parse)
    async with dashboard("127.0.0.1:1") as site:
        wrong = await site.post("/groups/any/dead-letters", {"csrf": "another"})
        assert wrong.status == 403
        many = await site.post("/groups/any/dead-letters", {f"field-{number}": "x" for number in range(1001)})
        assert (many.status, many.text) == (400, "A form has at most 1000 fields.\n")
    assert len(threads) == 2
    assert threading.get_ident() not in threads


async def test_every_response_has_a_strict_content_security_policy() -> None:
    async with dashboard("127.0.0.1:1") as site:
        for path in ("/", "/static/dashboard.js", "/absent"):
            policy = (await site.get(path)).headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy


async def test_a_foreign_host_name_is_refused() -> None:
    async with dashboard("127.0.0.1:1") as site:
        assert (await site.get("/", Host="evil.example")).status == 421


async def test_a_change_from_another_site_or_in_read_only_mode_is_refused() -> None:
    async with dashboard("127.0.0.1:1") as site:
        assert (await site.post("/topics", {}, Origin="http://evil.example")).status == 403
        assert (await site.post("/topics", {}, Sec_Fetch_Site="cross-site")).status == 403
    async with dashboard("127.0.0.1:1", DashboardSettings("x", read_only=True, hosts=HOSTS)) as site:
        assert "read-only" in (await site.post("/topics", {})).text


async def test_with_a_token_only_who_knows_it_sees_a_page_and_no_page_contains_it() -> None:
    async with dashboard("127.0.0.1:1", DashboardSettings("x", token="top-secret")) as site:
        assert (await site.get("/")).status == 401
        assert (await site.get("/", Accept="text/html")).headers["location"] == "/login?next=%2F"
        assert (await site.post("/login", {"token": "wrong"})).status == 403
        cookie = (await site.post("/login", {"token": "top-secret"})).headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "top-secret" not in cookie
        page = await site.get("/", Cookie=cookie.partition(";")[0])
        assert page.status == 200
        assert "top-secret" not in page.text
        assert (await site.get("/", Authorization="Bearer top-secret")).status == 200


async def test_after_the_login_a_visitor_comes_to_the_page_that_was_asked_for() -> None:
    asked = "/topics/a%2Fb/messages?by=key&q=x%20y"
    async with dashboard("127.0.0.1:1", DashboardSettings("x", token="top-secret")) as site:
        login = (await site.get(asked, Accept="text/html")).headers["location"]
        form = await site.get(login)
        (path,) = re.findall(r'name="next" value="([^"]*)"', form.text)
        assert html.unescape(path) == asked
        wrong = await site.post("/login", {"token": "wrong", "next": asked})
        assert f'name="next" value="{html.escape(asked)}"' in wrong.text
        right = await site.post("/login", {"token": "top-secret", "next": asked})
        assert (right.status, right.headers["location"]) == (303, asked)


@pytest.mark.parametrize(
    "path",
    [
        "//evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "/\t/evil.example",
        "/\n/evil.example",
        "/topics\\x",
        "https://evil.example",
        "javascript:alert(1)",
        "evil.example",
        "",
        "/login?next=/",
        "/\x7f",
        "/\u202e",
    ],
)
async def test_the_login_leads_to_own_pages_only(path: str) -> None:
    async with dashboard("127.0.0.1:1", DashboardSettings("x", token="top-secret")) as site:
        form = await site.get(f"/login?{urlencode({'next': path})}")
        assert 'name="next" value="/"' in form.text
        sent = await site.post("/login", {"token": "top-secret", "next": path})
        assert (sent.status, sent.headers["location"]) == (303, "/")


async def test_two_dashboards_of_one_host_do_not_log_each_other_out() -> None:
    settings = DashboardSettings("x", token="top-secret")
    async with dashboard("127.0.0.1:1", settings) as one, dashboard("127.0.0.1:1", settings) as other:
        # As a browser keeps them: one value for each name, sent to every port of the host.
        kept = {}
        for site in (one, other):
            sent = (await site.post("/login", {"token": "top-secret"})).headers["set-cookie"]
            name, _, value = sent.partition(";")[0].partition("=")
            kept[name] = value
        cookie = "; ".join(f"{name}={value}" for name, value in kept.items())
        assert len(kept) == 2
        assert [(await site.get("/", Cookie=cookie)).status for site in (one, other)] == [200, 200]


async def test_a_client_id_with_a_slash_has_a_page() -> None:
    async with dashboard("127.0.0.1:1") as site:
        page = await site.get("/groups/g/consumers/10.0.0.1%40a%2Fb%2F1")
    assert (page.status, page.text.count("<h1>10.0.0.1@a/b/1</h1>")) == (200, 1)


def test_a_page_number_that_does_not_exist_is_the_nearest() -> None:
    names = [f"t{number:03}" for number in range(120)]
    assert (paging(names, "", "99").page, len(paging(names, "", "99").names)) == (3, 20)
    assert paging(names, "", "-1").page == 1
    assert paging(names, "T11", "1").total == 10


async def test_a_form_with_too_many_fields_and_an_origin_that_is_none_are_refused() -> None:
    fields = {f"f{number}": "" for number in range(1001)}
    async with dashboard("127.0.0.1:1", DashboardSettings("x", token="top-secret")) as site:
        assert (await site.post("/login", fields)).status == 400
        assert (await site.post("/login", {}, Origin="http://[")).status == 403


async def test_no_page_leads_to_another_host() -> None:
    async with dashboard("127.0.0.1:1", DashboardSettings("x", token="top-secret")) as site:
        asked = {"Host": "evil.example", "Authorization": "Bearer top-secret"}
        assert "location" not in (await site.get("/topics/", **asked)).headers


async def test_a_visitor_who_leaves_in_the_middle_of_a_form_leaves_no_traceback(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with dashboard("127.0.0.1:1", DashboardSettings("x", token="top-secret")) as site:
        reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(site.url).port)
        writer.write(b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\nabc")
        await writer.drain()
        writer.write_eof()
        assert b" 5" not in await reader.readline()
        writer.close()
        await writer.wait_closed()
        assert (await site.get("/login")).status == 200
    # uvicorn writes its log to standard error, and passes it on to no other handler.
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/topics/T/send", 413, "A form has at most 16777216 bytes."),
        ("/groups/g/reset", 413, "A form has at most 16777216 bytes."),
        ("/login", 413, "A token is shorter."),
        ("/topics", 405, "Method Not Allowed"),
    ],
)
async def test_a_form_of_100_mb_is_refused_without_being_kept(path: str, status: int, said: str) -> None:
    def send(port: int) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.putrequest("POST", path)
        for name, value in {"Authorization": "Bearer t", "Content-Length": str(100 << 20)}.items():
            connection.putheader(name, value)
        connection.endheaders()
        # The server answers before it has read everything, and may close the connection.
        with contextlib.suppress(OSError):
            for _ in range(100):
                connection.send(bytes(1 << 20))
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    async with dashboard("127.0.0.1:1", DashboardSettings("x", token="t")) as site:
        port = urlsplit(site.url).port
        assert port is not None
        assert await asyncio.to_thread(send, port) == (status, said + ("" if status == 405 else "\n"))
        assert (await site.get("/resets", Authorization="Bearer t")).status == 200
