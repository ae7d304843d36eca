"""A program of its own: plain PySpark, told only where the metastore is. Prints JSON lines.

Arguments: the metastore's URI, a warehouse directory.
"""

import json
import sys

from pyspark.sql import SparkSession
from pyspark.sql.utils import AnalysisException

STATEMENTS = [
    "CREATE DATABASE shop COMMENT 'a shop'",
    "CREATE TABLE shop.plain (id INT, name STRING) USING parquet",
    "INSERT INTO shop.plain VALUES (1, 'one'), (2, 'zwei'), (3, NULL)",
    "SELECT * FROM shop.plain ORDER BY id",
    "CREATE TABLE shop.parts USING orc PARTITIONED BY (ds)"
    " AS SELECT 1 AS id, 'x' AS v, '2024-01-01' AS ds",
    "INSERT INTO shop.parts PARTITION (ds = '2024-01-02') VALUES (2, 'y'), (3, 'z')",
    "INSERT INTO shop.parts VALUES (4, 'w', '2024-01-03')",
    "SHOW PARTITIONS shop.parts",
    "SELECT id, v, ds FROM shop.parts WHERE ds > '2024-01-01' ORDER BY id",
    "ALTER TABLE shop.parts ADD PARTITION (ds = 'a/b=c')",
    "ALTER TABLE shop.parts DROP PARTITION (ds = '2024-01-02')",
    "SHOW PARTITIONS shop.parts",
    "CREATE TABLE shop.serde (id INT) PARTITIONED BY (p INT) STORED AS TEXTFILE",
    "INSERT INTO shop.serde PARTITION (p = 1) VALUES (10), (11)",
    "SELECT id, p FROM shop.serde ORDER BY id",
    "CREATE VIEW shop.seen AS SELECT id FROM shop.plain WHERE id > 1",
    "SELECT * FROM shop.seen ORDER BY id",
    "ALTER TABLE shop.plain ADD COLUMNS (extra DOUBLE)",
    "ALTER TABLE shop.plain SET TBLPROPERTIES ('k' = 'v')",
    "ANALYZE TABLE shop.plain COMPUTE STATISTICS FOR ALL COLUMNS",
    "DESCRIBE shop.plain",
    "ALTER TABLE shop.plain RENAME TO shop.renamed",
    "SELECT count(*) FROM shop.renamed",
    "SHOW TABLES IN shop",
    "TRUNCATE TABLE shop.renamed",
    "SELECT count(*) FROM shop.renamed",
    "DROP VIEW shop.seen",
    "DROP TABLE shop.renamed",
    "SELECT * FROM shop.renamed",
    "SHOW DATABASES",
    "DROP DATABASE shop CASCADE",
    "SHOW DATABASES",
]


def main(uri: str, warehouse: str) -> None:
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.warehouse.dir", warehouse)
        .config("spark.hadoop.hive.metastore.uris", uri)
        .config("spark.hadoop.hive.exec.dynamic.partition.mode", "nonstrict")
        .enableHiveSupport()
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    for statement in STATEMENTS:
        try:
            rows = [list(row) for row in spark.sql(statement).collect()]
        except AnalysisException as error:
            sys.stdout.write(json.dumps({"sql": statement, "error": str(error)[:300]}) + "\n")
            continue
        sys.stdout.write(json.dumps({"sql": statement, "rows": rows}) + "\n")
    sys.stdout.flush()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
