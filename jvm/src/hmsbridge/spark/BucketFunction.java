package hmsbridge.spark;

import java.util.stream.IntStream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** {@code hive_bucket(count, types, column, …)}: the bucket of a row, for Spark's planner. */
public final class BucketFunction implements UnboundFunction {
  static final String NAME = "hive_bucket";
  private static final long serialVersionUID = 1;
  private static final int FIRST_COLUMN = 2;

  static boolean isNamed(Identifier identifier) {
    return identifier.namespace().length == 0 && identifier.name().equals(NAME);
  }

  static UnboundFunction load(Identifier identifier) throws NoSuchFunctionException {
    if (!isNamed(identifier)) {
      throw new NoSuchFunctionException(identifier);
    }
    return new BucketFunction();
  }

  @Override
  public BoundFunction bind(StructType input) {
    StructField[] fields = input.fields();
    DataType[] types = new DataType[fields.length];
    for (int at = 0; at < types.length; at++) {
      types[at] = fields[at].dataType();
    }
    return new Bound(types);
  }

  @Override
  public String description() {
    return NAME + ": the bucket of a row of a table that is CLUSTERED BY";
  }

  @Override
  public String name() {
    return NAME;
  }

  /** For columns of some types. */
  public static final class Bound implements ScalarFunction<Integer> {
    private static final long serialVersionUID = 1;

    private final DataType[] types;
    private BucketHash hash;

    Bound(DataType[] types) {
      this.types = types;
    }

    @Override
    public DataType[] inputTypes() {
      return types;
    }

    @Override
    public DataType resultType() {
      return DataTypes.IntegerType;
    }

    @Override
    public boolean isResultNullable() {
      return false;
    }

    @Override
    public String name() {
      return NAME;
    }

    @Override
    public String canonicalName() {
      return "hmsbridge." + NAME;
    }

    @Override
    public Integer produceResult(InternalRow row) {
      if (hash == null) {
        hash = BucketHash.of(row.getUTF8String(1).toString());
      }
      int[] places = IntStream.range(FIRST_COLUMN, types.length).toArray();
      return hash.bucket(row, places, row.getInt(0));
    }
  }
}
