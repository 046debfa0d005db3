"""Writes docs/metrics.md: every metric of the dashboard's /metrics, from the table that the code exports."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rewindmq.dashboard.metrics.questions import AT_ONCE, MAX_QUESTIONS, SCRAPE_SECONDS
from rewindmq.dashboard.metrics.scraper import CACHE_SECONDS
from rewindmq.dashboard.metrics.table import EXPORTER, METRICS, OWN, RELEASE_5

TARGET: Final = Path(__file__).resolve().parent.parent / "docs" / "metrics.md"

_PREAMBLE: Final = f"""\
# Metrics

<!-- Written by ./scripts/generate_metrics_doc from dashboard/metrics/table.py. -->

[`rewindmq dashboard`](dashboard.md) serves `/metrics` for Prometheus, about a cluster of RewindMQ or of
RocketMQ. Names and labels are those of rocketmq-exporter and of RocketMQ 5.x, so existing alarms and panels
work. The format is OpenMetrics 1.0.0 if the request's `Accept` header names `application/openmetrics-text`,
as Prometheus's does, and Prometheus's text format otherwise.

```yaml
scrape_configs:
  - job_name: rewindmq
    scrape_interval: 15s
    scrape_timeout: 10s
    # Only if the dashboard was started with REWINDMQ_DASHBOARD_TOKEN; the file holds the token.
    authorization:
      credentials_file: /etc/prometheus/rewindmq-token
    static_configs:
      - targets: ["127.0.0.1:8082"]
```

[grafana/rewindmq.json](grafana/rewindmq.json) is a Grafana dashboard: import the file, and choose the
Prometheus data source. It shows rates, lag, consumers, disks, event loops and fenced resets.

## What a scrape costs

A scrape asks all brokers at the same time.

| bound | value |
|---|---|
| time for one answer | 2 s |
| questions to one broker | {MAX_QUESTIONS:,}, of which {AT_ONCE} at once |
| time after which no new question is asked | {SCRAPE_SECONDS:g} s |
| scrapes at the same time | one; others wait for its result |
| time for which a result is used again | {CACHE_SECONDS:g} s |

A broker with T topics and P pairs of a group and a topic gets about T + 3P questions. Each topic with a
message in the last two minutes adds two, each group one. Beyond the bounds, samples are left out, and
`rewindmq_scrape_unanswered` counts the questions. Cheap and important questions come first: the rates of
brokers, the lag of all groups, the offsets of topics.

## When a server does not answer

- Without a name server, the response has `rewindmq_namesrv_up` 0 and nothing about brokers.
- After the first question without an answer, a broker gets no further question, and `rewindmq_broker_up` is
  0. The other brokers' samples stay.
- An answer that cannot be decoded is no silence: `rewindmq_scrape_unreadable` counts it, its samples are
  missing, and the broker gets its further questions.
- `rocketmq_group_diff`, `rocketmq_group_retrydiff` and `rocketmq_group_dlqdiff` add up all brokers. They are
  left out while a master's part is unknown, because the sum would look like a lag that went away.
  `rocketmq_consumer_lag_messages` stays for each other broker.
- What a broker does not serve is left out. RocketMQ's brokers therefore have no fenced commits, fenced
  resets, event loops and usage.

## Differences

- `cluster` is the broker's own cluster; rocketmq-exporter writes the first cluster that it finds.
- `brokerHost` is the broker's name; rocketmq-exporter leaves it empty.
- `caddr` and `localaddr` end after 1,000 characters.
- `rocketmq_messages_in_total` is the sum of the maximum offsets, and therefore survives a restart of the
  broker. It has no `message_type`.
- A broadcasting group has no lag, no latency and no `rocketmq_consumer_offset` while a consumer is
  connected: its consumers keep the offsets, and those of the brokers are from before. Without a consumer,
  no broker knows that the group broadcasts, and its old offsets count.
- rocketmq-exporter's `rocketmq_client_…` are missing: the brokers would have to ask every consumer at each
  scrape. Its `rocketmq_group_consume_tps` and `rocketmq_group_consume_total_offset` are missing: it has no
  figures for them.
- `rocketmq_consumer_inflight_messages` counts popped messages; groups that only pull have 0. RocketMQ's
  brokers have it, as `rocketmq_pop_…`, only at their own exporter: no request returns it.
- `rocketmq_timer_dequeue_latency` is in whole seconds, because the broker's answer is.
- 5.x's histograms of message sizes and request times are missing: no request to a broker returns them.
  Its `rocketmq_messages_out_total`, `rocketmq_throughput_…` and its counts of connections are missing, too.
- RewindMQ's brokers refuse GET_BROKER_CONSUME_STATS (317) if the groups have more than 70,000 queues
  together. The samples of that broker's groups are then missing, and so are the sums over all brokers.

Every broker's `GET_BROKER_RUNTIME_INFO (28)` is read, of slaves nothing else.
"""

_HEADINGS: Final = {
    OWN: "Names of RewindMQ",
    EXPORTER: "Names of rocketmq-exporter",
    RELEASE_5: "Names of RocketMQ 5.x",
}


def render() -> str:
    """Return the whole document."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield _PREAMBLE
    for origin, heading in _HEADINGS.items():
        yield f"## {heading}\n"
        yield "| metric | kind | labels | value | from |"
        yield "|---|---|---|---|---|"
        for metric in METRICS.values():
            if metric.origin == origin:
                labels = ", ".join(metric.labels)
                row = (f"`{metric.name}`", metric.kind, labels, metric.meaning, metric.request)
                yield f"| {' | '.join(row)} |"
        yield ""


if __name__ == "__main__":
    TARGET.write_text(render())
