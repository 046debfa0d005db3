"""Every way to send."""

from __future__ import annotations

from interop.scenarios.scenario import Outcome, Stage, scenario


@scenario("send-sync", "send, and wait for the answer", "producer.start", "send.sync", "consume.concurrent")
async def send_sync(stage: Stage) -> Outcome:
    topic = await stage.topic()
    producer = await stage.producer()
    bodies = [f"body {number}" for number in range(8)]
    messages = [{"topic": topic, "body": body, "tags": "A", "keys": "k1 k2"} for body in bodies]
    results = (await stage.driver.do("send.sync", producer=producer, messages=messages))["results"]
    assert [result["status"] for result in results] == ["SEND_OK"] * len(bodies)
    assert len({(result["queue"], result["offset"]) for result in results}) == len(bodies)
    consumer = await stage.consumer(topic)
    assert sorted(await stage.driver.bodies(consumer, len(bodies))) == sorted(bodies)
    (first,) = (m for m in stage.driver.delivered[consumer] if m["body"] == bodies[0])
    return {"tags": first["tags"], "keys": first["keys"], "sys_flag": first["sys_flag"]}
