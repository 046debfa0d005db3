"""Transactions: committed, rolled back, and checked."""

from __future__ import annotations

from typing import Final

from tools.interop.scenarios.scenario import InteropStage, Message, Outcome, looks, scenario, to_send

# Body to (how the transaction ends at once, state that a transaction check gets). On a slow machine the
# broker may also check transactions that have ended already.
_ENDS: Final = {
    "committed": ("commit", "commit"),
    "rolled back": ("rollback", "rollback"),
    "committed by check": ("unknown", "commit"),
    "rolled back by check": ("unknown", "rollback"),
}
_COMMITTED: Final = {"committed", "committed by check"}
_CHECKED: Final = {"committed by check", "rolled back by check"}
_CHECK_TIMES: Final = "TRANSACTION_CHECK_TIMES"


@scenario(
    "send-transaction",
    "transactions and transaction checks",
    "producer.start",
    "send.transaction",
    "consume.concurrent",
)
async def send_transaction(stage: InteropStage) -> Outcome:
    topic = await stage.topic()
    producer = await stage.producer(transactional=True)
    messages: list[Message] = []
    for body, (local, check) in _ENDS.items():
        messages += to_send(topic, [body], tags="T", local=local, check=check)
    results = await stage.send(producer, messages, "send.transaction")
    consumer = await stage.consumer(topic)
    await _checked(stage, producer)
    delivered = stage.driver.delivered[consumer]

    def bodies() -> list[str]:
        return [message["body"] for message in delivered]

    await stage.until(lambda: {*bodies()} >= _COMMITTED, lambda: f"delivered: {bodies()}")
    # A rolled-back message would arrive before the message that is sent now.
    await stage.send(await stage.producer("after"), to_send(topic, ["after"]))
    await stage.until(lambda: "after" in bodies(), lambda: f"delivered: {bodies()}")
    # 5.x may check twice, get two answers, and deliver twice.
    assert {*bodies()} == {*_COMMITTED, "after"}, delivered
    by_body = {message["body"]: looks(message) for message in delivered}
    by_body["committed"]["properties"] = sorted({*by_body["committed"]["properties"]} - {_CHECK_TIMES})
    checks = stage.driver.checked[producer]
    return {
        "states": [result.get("transaction_state") for result in results],
        "delivered": by_body,
        "check": next(looks(message) for message in checks if message["body"] in _CHECKED),
    }


async def _checked(stage: InteropStage, producer: str) -> None:
    def bodies() -> list[str]:
        return [message["body"] for message in stage.driver.checked[producer]]

    await stage.until(lambda: {*bodies()} >= _CHECKED, lambda: f"checked back: {bodies()}")
