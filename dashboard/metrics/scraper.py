"""Scraper: asks all brokers for the metrics, one scrape at a time, and keeps the result for some seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from rewindmq.dashboard.data.cluster_source import ClusterSource
from rewindmq.dashboard.metrics.questions import SCRAPE_SECONDS
from rewindmq.dashboard.metrics.report import BrokerPlace, ask_broker
from rewindmq.dashboard.metrics.samples import Samples, add_reports
from rewindmq.protocol.remoting.process.collector import paused

# Seconds for which a result is used again; two Prometheus servers then cost as much as one.
CACHE_SECONDS: Final = 5.0


class Scraper:
    """Asks the brokers of a cluster for their metrics."""

    def __init__(self, source: ClusterSource) -> None:
        self._source = source
        self._turn = asyncio.Lock()
        self._kept: Samples | None = None
        self._kept_until = 0.0

    async def exposition(self, accept: str) -> tuple[bytes, str]:
        """Return the metrics and their content type.

        Args:
            accept: the request's Accept header: OpenMetrics if it names ``application/openmetrics-text``,
                else Prometheus's text format.
        """
        samples = await self._samples()
        registry = CollectorRegistry(auto_describe=False)
        registry.register(samples)
        encode: Callable[[CollectorRegistry], bytes]
        encode, content_type = choose_encoder(accept)
        # Tens of thousands of lines take long enough to hold up the pages.
        return await asyncio.to_thread(encode, registry), content_type

    async def _samples(self) -> Samples:
        clock = self._source.runtime.clock
        async with self._turn:
            if self._kept is None or clock.monotonic() >= self._kept_until:
                # Each of many collections would visit the answers, which are freed without one.
                with paused():
                    self._kept = await self._scrape()
                self._kept_until = clock.monotonic() + CACHE_SECONDS
            return self._kept

    async def _scrape(self) -> Samples:
        source, samples = self._source, Samples()
        clock = source.runtime.clock
        started = clock.monotonic()
        info = await source.ask(source.admin.brokers.examine_broker_cluster_info())
        samples.add("rewindmq_namesrv_up", (), float(info.value is not None))
        brokers = sorted(info.value.broker_addr_table.items()) if info.value else []
        places = [
            BrokerPlace(broker.cluster or "", name, int(broker_id), address)
            for name, broker in brokers
            for broker_id, address in sorted(broker.broker_addrs.items())
        ]
        until = started + SCRAPE_SECONDS
        reports = await asyncio.gather(*(ask_broker(source, place, until) for place in places))
        # In a worker thread, like the encoding: 100,000 queues would hold up the pages.
        await source.runtime.workers.run(add_reports, samples, reports, clock.now_ms())
        samples.add("rewindmq_scrape_duration_seconds", (), clock.monotonic() - started)
        return samples
