"""``DataFrame.mapInArrow`` without pandas, which Spark requires for it but does not use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

ArrowMap = Callable[[Iterator["pa.RecordBatch"]], Iterator["pa.RecordBatch"]]


def map_in_arrow(frame: DataFrame, function: ArrowMap, schema: str) -> DataFrame:
    """Apply ``function`` to a frame's Arrow batches, partition by partition, in workers.

    Args:
        schema: schema of the batches that ``function`` returns, as DDL.
    """
    from pyspark.sql import DataFrame
    from pyspark.sql.pandas import functions as vectorized
    from pyspark.util import PythonEvalType

    # Copied from PandasMapOpsMixin.mapInArrow of Spark 4.3, except the check that pandas is installed.
    module: Any = vectorized
    udf = module.vectorized_udf(
        function, returnType=schema, functionType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF
    )
    source: Any = frame
    column = udf(*[source[name] for name in source.columns])
    result: Any = DataFrame
    mapped: DataFrame = result(source._jdf.mapInArrow(column._jc, False, None), source.sparkSession)
    return mapped
