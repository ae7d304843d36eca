package hmsbridge.spark;

import org.apache.orc.CompressionKind;
import org.apache.orc.TypeDescription;
import org.apache.spark.sql.types.StructField;

/** What the event files of a write have in common. */
final class EventSchema {
  final TypeDescription row;
  final TypeDescription event;
  final long writeId;
  final CompressionKind compression;
  /** For the stored columns, by their places. */
  final ColumnSetter[] setters;

  EventSchema(WriteSpec spec) {
    row = TypeDescription.fromString(spec.row);
    event = EventFile.schema(row);
    writeId = spec.writeId;
    compression = CompressionKind.valueOf(spec.compression);
    StructField[] fields = spec.schema.fields();
    SessionZone zone = new SessionZone(spec.zone);
    setters = new ColumnSetter[row.getChildren().size()];
    for (int at = 0; at < setters.length; at++) {
      setters[at] = ColumnSetters.of(fields[at].dataType(), row.getChildren().get(at), zone);
    }
  }
}
