package hmsbridge.spark;

import org.apache.hadoop.hive.ql.exec.vector.ColumnVector;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;

/** Puts a value of Spark's into a vector of ORC's ({@link ColumnSetters}). */
interface ColumnSetter {
  void set(ColumnVector to, int at, SpecializedGetters from, int ordinal);
}
