"""Messages chosen by tags and by SQL92 expressions."""

from __future__ import annotations

from typing import Final

from rewindmq.protocol.code import ResponseCode
from tools.interop.driver import DriverError
from tools.interop.scenarios.scenario import InteropStage, OneOf, Outcome, looks, scenario, to_send

_SQL: Final = "(number BETWEEN 2 AND 4 AND colour IN ('blue', 'red')) OR TAGS = 'always' OR size IS NOT NULL"

_SPACED: Final = "A || C"
# rocketmq-client-rust asks for the hash of a tag with the spaces around it, which no message has
# (FilterAPI::build_subscription_data): with spaces it gets nothing, from a RocketMQ broker neither.
_EXPRESSIONS: Final = {"rocketmq-client-rust": "A||C"}

_ASKS_WITH_A_ROUTE: Final = (
    "Java asks a broker to check the expression only if it has the route by then"
    " (MQClientInstance#checkClientInBroker): after a slow look-up it starts"
)
# What a library with Java's check raises, by driver.
_REFUSALS: Final = {
    "rocketmq-client": {"type": "MQClientException", "code": ResponseCode.SUBSCRIPTION_PARSE_FAILED},
    "rocketmq-spring-boot-starter": {
        "type": "ApplicationContextException",
        "code": ResponseCode.SUBSCRIPTION_PARSE_FAILED,
    },
    "spring-cloud-starter-stream-rocketmq": {
        "type": "MessagingException",
        "code": ResponseCode.SUBSCRIPTION_PARSE_FAILED,
    },
}


@scenario("filter-tags", "filter by tags", "producer.start", "send.sync", "consume.concurrent")
async def filter_tags(stage: InteropStage) -> Outcome:
    topic = await stage.topic(queues=1)
    producer = await stage.producer()
    for tag in ("A", "B", "C", "D", "A"):
        await stage.send(producer, to_send(topic, [f"tag {tag}"], tags=tag))
    await stage.send(producer, to_send(topic, ["no tag"]))
    await stage.send(producer, to_send(topic, ["the last"], tags="C"))
    expression = _EXPRESSIONS.get(stage.driver.client, _SPACED)
    consumer = await stage.consumer(topic, expression=expression, threads=1)
    bodies = await stage.bodies(consumer, 4)
    assert bodies == ["tag A", "tag C", "tag A", "the last"]
    return {"message": looks(stage.driver.delivered[consumer][0])}


@scenario("filter-sql92", "filter by SQL92", "producer.start", "send.sync", "consume.concurrent", "sql92")
async def filter_sql(stage: InteropStage) -> Outcome:
    topic = await stage.topic(queues=1)
    producer = await stage.producer()
    for number in range(6):
        colour = "blue" if number % 2 else "green"
        properties = {"number": str(number), "colour": colour}
        await stage.send(producer, to_send(topic, [f"{number} {colour}"], properties=properties))
    await stage.send(producer, to_send(topic, ["tagged"], tags="always"))
    await stage.send(producer, to_send(topic, ["sized"], properties={"size": "1"}))
    consumer = await stage.consumer(topic, expression=_SQL, expression_type="SQL92", threads=1)
    assert await stage.bodies(consumer, 3) == ["3 blue", "tagged", "sized"]
    return {"message": looks(stage.driver.delivered[consumer][0])}


@scenario("filter-sql92-wrong", "SQL92 with a syntax error", "consume.concurrent", "sql92")
async def filter_sql_wrong(stage: InteropStage) -> Outcome:
    topic = await stage.topic()
    # The outcome of a library that starts without a broker's check of the expression.
    outcome: Outcome = {"started": True}
    try:
        await stage.consumer(topic, expression="number > > 3", expression_type="SQL92")
    except DriverError as error:
        outcome = {"type": error.kind, "code": error.code}
    refusal = _REFUSALS.get(stage.driver.client)
    if refusal is not None:
        return {"outcome": OneOf(_ASKS_WITH_A_ROUTE, (refusal, {"started": True}), outcome)}
    return outcome
