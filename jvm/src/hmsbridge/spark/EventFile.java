package hmsbridge.spark;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import org.apache.orc.OrcProto;
import org.apache.orc.TypeDescription;

/** The columns of a file of a full ACID table, each row an event (Hive: OrcRecordUpdater). */
final class EventFile {
  static final int OPERATION = 0;
  static final int WRITE_ID = 1;
  static final int BUCKET = 2;
  static final int ROW_ID = 3;
  static final int CURRENT_WRITE_ID = 4;
  static final int ROW = 5;
  static final int COLUMNS = 6;

  private static final List<String> NAMES =
      Arrays.asList(
          "operation", "originaltransaction", "bucket", "rowid", "currenttransaction", "row");

  private EventFile() {}

  static boolean isOne(TypeDescription schema) {
    if (schema.getCategory() != TypeDescription.Category.STRUCT
        || schema.getFieldNames().size() != COLUMNS) {
      return false;
    }
    for (int place = 0; place < COLUMNS; place++) {
      if (!NAMES.get(place).equals(schema.getFieldNames().get(place).toLowerCase(Locale.ROOT))) {
        return false;
      }
    }
    return true;
  }

  static TypeDescription schema(TypeDescription row) {
    return TypeDescription.createStruct()
        .addField("operation", TypeDescription.createInt())
        .addField("originalTransaction", TypeDescription.createLong())
        .addField("bucket", TypeDescription.createInt())
        .addField("rowId", TypeDescription.createLong())
        .addField("currentTransaction", TypeDescription.createLong())
        .addField("row", row.clone());
  }

  /** ORC's number of an event column, the root being 0. */
  static int id(int place) {
    return place + 1;
  }

  /**
   * The least and the greatest value of an event column; null if the file does not say.
   *
   * @param statistics as the file has them: ORC's own reading fails for a boolean that is always
   *     null, as earlier versions wrote it
   */
  static long[] bounds(List<OrcProto.ColumnStatistics> statistics, int place) {
    if (statistics.size() <= id(place)) {
      return null;
    }
    OrcProto.IntegerStatistics numbers = statistics.get(id(place)).getIntStatistics();
    boolean isKnown = numbers.hasMinimum() && numbers.hasMaximum();
    return isKnown && numbers.getMinimum() <= numbers.getMaximum()
        ? new long[] {numbers.getMinimum(), numbers.getMaximum()}
        : null;
  }
}
