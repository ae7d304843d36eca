package hmsbridge.spark;

import java.io.Serializable;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.util.List;
import org.apache.hive.common.util.Murmur3;
import org.apache.orc.TypeDescription;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * The bucket of a row by the values of some columns: Hive's bucketing version 2
 * (ObjectInspectorUtils.getBucketNumber). The plan service refuses columns of other types.
 */
final class BucketHash implements Serializable {
  private static final long serialVersionUID = 1;
  private static final int FACTOR = 31;

  /** The columns' types, as ORC writes a struct of them. */
  final String type;
  private transient TypeDescription[] types;

  private BucketHash(String type) {
    this.type = type;
  }

  static BucketHash of(String type) {
    return new BucketHash(type);
  }

  /**
   * @param places of the columns in the row
   */
  int bucket(InternalRow row, int[] places, int count) {
    if (types == null) {
      List<TypeDescription> children = TypeDescription.fromString(type).getChildren();
      types = children.toArray(new TypeDescription[0]);
    }
    int folded = 0;
    for (int at = 0; at < places.length; at++) {
      int hash = row.isNullAt(places[at]) ? 0 : hash(row, places[at], types[at]);
      folded = FACTOR * folded + hash;
    }
    return (folded & Integer.MAX_VALUE) % count;
  }

  private static int hash(InternalRow row, int place, TypeDescription type) {
    switch (type.getCategory()) {
      case BOOLEAN:
        return row.getBoolean(place) ? 1 : 0;
      case BYTE:
        return row.getByte(place);
      case SHORT:
        return hash(ByteBuffer.allocate(Short.BYTES).putShort(row.getShort(place)).array());
      case INT:
      case DATE:
        return hash(ByteBuffer.allocate(Integer.BYTES).putInt(row.getInt(place)).array());
      case LONG:
        return hash(ByteBuffer.allocate(Long.BYTES).putLong(row.getLong(place)).array());
      case STRING:
      case VARCHAR:
        return hash(row.getUTF8String(place).getBytes());
      case CHAR:
        return hash(row.getUTF8String(place).trimRight(UTF8String.fromString(" ")).getBytes());
      case BINARY:
        return hash(row.getBinary(place));
      case DECIMAL:
        return hash(row, place, type.getPrecision(), type.getScale());
      default:
        throw new IllegalStateException("rows cannot be bucketed by " + type);
    }
  }

  private static int hash(InternalRow row, int place, int precision, int scale) {
    BigDecimal value = row.getDecimal(place, precision, scale).toJavaBigDecimal();
    BigDecimal bare = value.signum() == 0 ? BigDecimal.ZERO : value.stripTrailingZeros();
    BigDecimal whole = bare.scale() < 0 ? bare.setScale(0) : bare;
    return hash(whole.unscaledValue().toByteArray());
  }

  private static int hash(byte[] bytes) {
    return Murmur3.hash32(bytes);
  }
}
