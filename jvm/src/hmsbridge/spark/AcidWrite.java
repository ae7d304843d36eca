package hmsbridge.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.connector.distributions.Distribution;
import org.apache.spark.sql.connector.distributions.Distributions;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.SortDirection;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.RequiresDistributionAndOrdering;
import org.apache.spark.sql.types.StructType;

/** An append. Spark brings rows of one partition, and of one bucket, together and in order. */
final class AcidWrite implements RequiresDistributionAndOrdering {
  private final AcidTable table;
  private final StructType schema;

  AcidWrite(AcidTable table, StructType schema) {
    this.table = table;
    this.schema = schema;
  }

  @Override
  public String description() {
    return "hms-bridge append to " + table.name();
  }

  @Override
  public Distribution requiredDistribution() {
    Expression[] keys = keys().toArray(new Expression[0]);
    return keys.length == 0 ? Distributions.unspecified() : Distributions.clustered(keys);
  }

  /** Each task that writes an unbucketed table is a bucket of its own: Spark may use several. */
  @Override
  public boolean distributionStrictlyRequired() {
    return table.buckets != null;
  }

  @Override
  public SortOrder[] requiredOrdering() {
    return keys().stream()
        .map(key -> Expressions.sort(key, SortDirection.ASCENDING))
        .toArray(SortOrder[]::new);
  }

  private List<Expression> keys() {
    List<Expression> keys = new ArrayList<>();
    for (String column : table.partitionColumns) {
      keys.add(Expressions.column(AcidTable.quoted(column)));
    }
    if (table.buckets != null) {
      keys.add(table.buckets.expression());
    }
    return keys;
  }

  @Override
  public BatchWrite toBatch() {
    return new AcidBatchWrite(table, schema);
  }
}
