package hmsbridge.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import org.apache.orc.TypeDescription;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.types.StructType;

/** Into how many buckets a table is CLUSTERED, and BY which columns. */
final class Buckets implements Serializable {
  private static final long serialVersionUID = 1;

  private final int count;
  private final String[] columns;
  private final int[] places;
  private final BucketHash hash;

  private Buckets(int count, String[] columns, int[] places, BucketHash hash) {
    this.count = count;
    this.columns = columns;
    this.places = places;
    this.hash = hash;
  }

  /**
   * Null for a table that is not.
   *
   * @param answer of table/load
   */
  static Buckets of(JsonNode answer, StructType schema) {
    JsonNode buckets = answer.path("buckets");
    if (buckets.isMissingNode()) {
      return null;
    }
    String[] columns = Json.texts(buckets.path("columns"));
    int[] places = new int[columns.length];
    for (int at = 0; at < columns.length; at++) {
      places[at] = schema.fieldIndex(columns[at]);
    }
    String type = buckets.path("type").asText();
    return new Buckets(buckets.path("count").asInt(), columns, places, BucketHash.of(type));
  }

  int of(InternalRow row) {
    return hash.bucket(row, places, count);
  }

  /** Spark computes it for each row that it brings to a task ({@link BucketFunction}). */
  Expression expression() {
    List<Expression> arguments = new ArrayList<>();
    arguments.add(Expressions.literal(count));
    arguments.add(Expressions.literal(hash.type));
    for (String column : columns) {
      arguments.add(Expressions.column(AcidTable.quoted(column)));
    }
    return Expressions.apply(BucketFunction.NAME, arguments.toArray(new Expression[0]));
  }
}
