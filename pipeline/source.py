"""``spark.read.format("rocketmq")``: a broker's store as a Spark data source (PySpark's Python data
source API)."""

from __future__ import annotations

import sys
from typing import Final

from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType

from rewindmq.pipeline.errors import PipelineError
from rewindmq.pipeline.options import check_columns, parse_options
from rewindmq.pipeline.pushdown.far_times import accept_far_times
from rewindmq.pipeline.schema import ddl
from rewindmq.pipeline.snapshot.snapshot import check_store
from rewindmq.pipeline.views.by_name import READERS
from rewindmq.pipeline.views.messages import PushingMessageReader

# The module that Spark runs in the process that receives filters.
_FILTER_WORKER: Final = "pyspark.sql.worker.data_source_pushdown_filters"


class StoreDataSource(DataSource):
    """The data source; ``docs/pipeline/reading.md`` lists its options."""

    @classmethod
    def name(cls) -> str:
        return "rocketmq"

    def schema(self) -> str:
        options = parse_options(self.options)
        for location in options.locations:
            check_store(location)
        return ddl(options.columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        options = parse_options(self.options)
        check_columns(options, schema.names)
        for field in schema.fields:
            kind = options.columns[field.name].type
            if field.dataType.simpleString() != kind:
                raise PipelineError(
                    f"column {field.name!r} has type {kind}, not {field.dataType.simpleString()}"
                )
        if _is_handed_filters():
            accept_far_times()
            if options.view == "messages":
                return PushingMessageReader(options, schema.names)
        return READERS[options.view](options, schema.names)


def _is_handed_filters() -> bool:
    """Whether Spark started this process to pass filters.

    In other processes Spark may reject a reader that accepts filters.
    """
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return _FILTER_WORKER in sys.modules or (spec is not None and spec.name == _FILTER_WORKER)
