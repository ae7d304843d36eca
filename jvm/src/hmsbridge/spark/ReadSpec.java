package hmsbridge.spark;

import java.io.Serializable;
import java.util.HashMap;
import org.apache.spark.sql.types.StructType;

/** What all tasks of a scan have in common. */
public final class ReadSpec implements Serializable {
  private static final long serialVersionUID = 1;

  /** The struct column that has ROW__ID: writeid, bucketid, rowid, or some of them. */
  public static final String ROW_ID = "row__id";

  /** What the scan gives: stored columns, partition columns, {@link #ROW_ID}, each if asked for. */
  public final StructType schema;
  /** All stored columns in their order, as ORC writes the type of a struct. */
  public final String row;
  /** Their names, as in the schema. */
  public final String[] columns;
  public final String[] partitionColumns;
  /** Which rows are wanted: a tree of the plan service as JSON, or null. Spark judges it again. */
  public final String filter;
  public final Snapshot snapshot;
  /** The session's time zone: where it is as late as a stored wall clock shows. */
  public final String zone;
  /** False for insert-only tables, whose rows have no ROW__ID and are never deleted. */
  public final boolean acid;
  /** How files are stored: orc, parquet or text. */
  public final String format;
  /** What the SerDe of lines is started with, if files are texts. */
  public final HashMap<String, String> text;

  public ReadSpec(
      StructType schema,
      String row,
      String[] columns,
      String[] partitionColumns,
      String filter,
      Snapshot snapshot,
      String zone,
      boolean acid,
      String format,
      HashMap<String, String> text) {
    this.schema = schema;
    this.row = row;
    this.columns = columns;
    this.partitionColumns = partitionColumns;
    this.filter = filter;
    this.snapshot = snapshot;
    this.zone = zone;
    this.acid = acid;
    this.format = format;
    this.text = text;
  }
}
