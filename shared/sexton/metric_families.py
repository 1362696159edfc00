"""Metrics as Prometheus takes them: families made of plain values at the moment of a scrape.

What counts on a hot path is an integer or a ``Distribution``; nothing of the Prometheus client is touched before
somebody asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector, CollectorRegistry

from sexton.distributions import Distribution


def gauge(name: str, says: str, value: float | None) -> Metric:
    """One value; a family without one where it is None."""
    return GaugeMetricFamily(name, says, value=value)


def gauges(name: str, says: str, label: str, values: Mapping[str, float | None]) -> Metric:
    """A value for each value of the label, but where it is None."""
    family = GaugeMetricFamily(name, says, labels=[label])
    for key, value in values.items():
        if value is not None:
            family.add_metric([key], value)
    return family


def one_of(name: str, says: str, label: str, all_of: Iterable[str], which: str | None) -> Metric:
    """1 for the value that holds, 0 for the others."""
    return gauges(name, says, label, {key: float(key == which) for key in all_of})


def counter(name: str, says: str, value: float) -> Metric:
    """One count; ``name`` without ``_total``."""
    return CounterMetricFamily(name, says, value=value)


def counters(name: str, says: str, label: str, values: Mapping[str, float]) -> Metric:
    """A count for each value of the label."""
    family = CounterMetricFamily(name, says, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family


def histogram(name: str, says: str, seen: Distribution) -> Metric:
    """One distribution."""
    buckets, total = seen.cumulative()
    return HistogramMetricFamily(name, says, buckets=_named(buckets), sum_value=total)


def histograms(name: str, says: str, label: str, seen: Mapping[str, Distribution]) -> Metric:
    """A distribution for each value of the label."""
    family = HistogramMetricFamily(name, says, labels=[label])
    for key, distribution in seen.items():
        buckets, total = distribution.cumulative()
        family.add_metric([key], _named(buckets), total)
    return family


def about(program: str, name: str, version: str) -> Metric:
    """What this process is."""
    family = GaugeMetricFamily("sexton_info", "What this process is.", labels=["program", "name", "version"])
    family.add_metric([program, name, version], 1)
    return family


class Exposition:
    """The text of what ``families`` gives, and of the process's own memory, processor time and files."""

    def __init__(self, families: Callable[[], Iterable[Metric]]) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_Families(families))
        ProcessCollector(registry=self._registry)

    def text(self, accept: str) -> tuple[str, bytes]:
        """The kind of content that fits the header ``Accept``, and the content."""
        encoder, kind = choose_encoder(accept)
        return kind, encoder(self._registry)


class _Families(Collector):
    def __init__(self, families: Callable[[], Iterable[Metric]]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families()

    def describe(self) -> Iterable[Metric]:
        return ()  # else registering would collect, before there is anything


def _named(buckets: Iterable[tuple[float, int]]) -> list[tuple[str, float]]:
    return [("+Inf" if bound == float("inf") else f"{bound:g}", count) for bound, count in buckets]
