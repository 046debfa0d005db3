"""The dashboard sends one message, if it may."""

from rewindmq import LocalCluster, Message
from rewindmq.dashboard.web.page import Settings
from tests.dashboard.site import HOSTS, dashboard

FIELDS = {"csrf": "form-token", "body": "<b>Ä\n2</b>", "tag": "t", "keys": "k1 k2"}


async def test_a_form_sends_one_message_and_leads_to_it(cluster: LocalCluster) -> None:
    async with cluster.producer("p") as producer:
        await producer.send(Message("Sent", b"first"))
    async with dashboard(cluster.namesrv_address) as site:
        assert 'name="csrf" value="form-token"' in (await site.get("/topics/Sent/send")).text
        assert (await site.post("/topics/Sent/send", FIELDS | {"csrf": "guessed"})).status == 403
        answered = await site.post("/topics/Sent/send", FIELDS)
        assert answered.status == 303
        page = (await site.get(answered.headers["location"])).text
        assert "&lt;b&gt;Ä\n2&lt;/b&gt;" in page
        assert '<th scope="row">KEYS</th><td class="wrap">k1 k2</td>' in page
        found = await site.get("/topics/Sent/messages?by=key&q=k2")
        assert found.text.count("/topics/Sent/messages/broker-") == 1


async def test_a_topic_that_does_not_exist_is_not_created_by_a_send(cluster: LocalCluster) -> None:
    async with dashboard(cluster.namesrv_address) as site, cluster.admin() as admin:
        answered = await site.post("/topics/Mistyped/send", FIELDS)
        assert "Nothing was sent: the name server knows no broker with it." in answered.text
        assert "k1 k2" in answered.text
        assert "Mistyped" not in await admin.fetch_all_topic_list()


async def test_a_message_that_no_broker_accepts_is_refused_in_a_sentence(cluster: LocalCluster) -> None:
    async with cluster.producer("p") as producer:
        await producer.send(Message("Sent", b"first"))
    async with dashboard(cluster.namesrv_address) as site:
        answered = await site.post("/topics/Sent/send", FIELDS | {"body": ""})
        assert answered.status == 200
        assert 'role="alert"' in answered.text


async def test_a_read_only_dashboard_sends_nothing(cluster: LocalCluster) -> None:
    settings = Settings("form-token", read_only=True, hosts=HOSTS)
    async with dashboard(cluster.namesrv_address, settings) as site:
        page = await site.get("/topics/Sent/send")
        assert "<textarea" not in page.text
        assert (await site.post("/topics/Sent/send", FIELDS)).status == 403
