#!/usr/bin/env bash
# With filter pushdown, a time outside the years 1 to 9999 in a filter ends a query, although the filter is never pushed.
#
# Packages: pyspark 4.3.0 with py4j 0.10.9.9, pyarrow 26.0.1; Java 17 or newer.
# Expected: Spark SQL has timestamps up to the year 294247. Pushdown saves reading; with it or without it, a query has one result. A
#   Python data source that does not define pushFilters() gets no filters.
# Seen: with spark.sql.python.filterPushdown.enabled, PySpark converts the value of every filter to Python's datetime before it asks the
#   reader, even one without pushFilters(). At a year that datetime does not have, planning fails with an OverflowError.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
command -v java >/dev/null || { echo "needs Java 17 or newer on the PATH" >&2; exit 2; }
python3 -m venv "$folder/env" && "$folder/env/bin/pip" install --quiet --disable-pip-version-check \
    pyspark==4.3.0 py4j==0.10.9.9 pyarrow==26.0.1 || exit 2

cat >"$folder/show.py" <<'PYTHON'
from datetime import datetime

import pyspark
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader


class Reader(DataSourceReader):
    def read(self, partition):
        yield (datetime(2026, 1, 1),)


class Times(DataSource):
    @classmethod
    def name(cls):
        return "times"

    def schema(self):
        return "at timestamp"

    def reader(self, schema):
        return Reader()


session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
session.dataSource.register(Times)
print("pyspark", pyspark.__version__)
for pushdown in ("false", "true"):
    session.conf.set("spark.sql.python.filterPushdown.enabled", pushdown)
    for condition in (
        "at < timestamp '9999-01-01 00:00:00'",
        "at < timestamp '+10000-01-02 00:00:00'",
        "at > timestamp '-0001-01-01 00:00:00'",
    ):
        try:
            result = session.read.format("times").load().where(condition).count()
        except Exception as error:
            result = "OverflowError" if "OverflowError" in str(error) else error
        print(f"pushdown {pushdown}, {condition}: {result}")
session.stop()
PYTHON

export PYSPARK_PYTHON=$folder/env/bin/python SPARK_LOCAL_IP=127.0.0.1
"$folder/env/bin/python" "$folder/show.py" 2>"$folder/log" | diff - /dev/fd/3 3<<'SEEN' || { cat "$folder/log" >&2; exit 1; }
pyspark 4.3.0
pushdown false, at < timestamp '9999-01-01 00:00:00': 1
pushdown false, at < timestamp '+10000-01-02 00:00:00': 1
pushdown false, at > timestamp '-0001-01-01 00:00:00': 1
pushdown true, at < timestamp '9999-01-01 00:00:00': 1
pushdown true, at < timestamp '+10000-01-02 00:00:00': OverflowError
pushdown true, at > timestamp '-0001-01-01 00:00:00': OverflowError
SEEN
