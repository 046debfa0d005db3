#!/usr/bin/env bash
# A Python data source of Spark that plans no partition is read once all the same.
#
# Packages: pyspark 4.3.0 with py4j 0.10.9.9, pyarrow 26.0.1; Java 17 or newer.
# Expected: DataSourceReader.partitions() returns the partitions to read. If it returns [], there is nothing to read.
# Seen: Spark calls read(InputPartition(None)) then, and what it yields are rows of the result.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
command -v java >/dev/null || { echo "needs Java 17 or newer on the PATH" >&2; exit 2; }
python3 -m venv "$folder/env" && "$folder/env/bin/pip" install --quiet --disable-pip-version-check \
    pyspark==4.3.0 py4j==0.10.9.9 pyarrow==26.0.1 || exit 2

cat >"$folder/show.py" <<'PYTHON'
import pyspark
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader


class Reader(DataSourceReader):
    def partitions(self):
        return []

    def read(self, partition):
        yield (f"read({partition!r})",)


class Empty(DataSource):
    @classmethod
    def name(cls):
        return "empty"

    def schema(self):
        return "call string"

    def reader(self, schema):
        return Reader()


session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
session.dataSource.register(Empty)
print("pyspark", pyspark.__version__)
print(session.read.format("empty").load().collect())
session.stop()
PYTHON

export PYSPARK_PYTHON=$folder/env/bin/python SPARK_LOCAL_IP=127.0.0.1
"$folder/env/bin/python" "$folder/show.py" 2>"$folder/log" | diff - /dev/fd/3 3<<'SEEN' || { cat "$folder/log" >&2; exit 1; }
pyspark 4.3.0
[Row(call='read(InputPartition(value=None))')]
SEEN
