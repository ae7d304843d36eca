package hmsbridge.spark;

import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.types.StructType;

/** Gathers what a scan needs. Spark makes scans that it never runs, so nothing is asked here. */
final class AcidScanBuilder implements SupportsPushDownRequiredColumns, SupportsPushDownV2Filters {
  private final AcidTable table;
  private StructType schema;
  private Predicate[] predicates = new Predicate[0];

  AcidScanBuilder(AcidTable table) {
    this.table = table;
    this.schema = table.schema();
  }

  @Override
  public void pruneColumns(StructType required) {
    schema = required;
  }

  /** Filters leave out partitions and stripes, not rows: Spark has to judge all of them again. */
  @Override
  public Predicate[] pushPredicates(Predicate[] pushed) {
    predicates = pushed;
    return pushed;
  }

  @Override
  public Predicate[] pushedPredicates() {
    return predicates;
  }

  @Override
  public Scan build() {
    return new AcidScan(table, schema, predicates);
  }
}
