package hmsbridge.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;
import org.apache.spark.sql.types.StructType;

/** What all tasks of a write have in common. */
final class WriteSpec implements Serializable {
  private static final long serialVersionUID = 1;

  /** Stored columns, then partition columns. */
  final StructType schema;
  /** The stored columns' type, as ORC writes it. */
  final String row;
  /** The directory below which tasks write. */
  final String staging;
  final long writeId;
  /** ORC's name of the codec. */
  final String compression;
  /** Columns in which no row may lack a value. */
  final String[] required;
  /** Null for a table that is not CLUSTERED BY. */
  final Buckets buckets;
  /** The session's time zone, whose wall clock a stored timestamp shows. */
  final String zone;

  /** Of an answer to write/begin. */
  WriteSpec(StructType schema, JsonNode answer, Buckets buckets, String zone) {
    this.schema = schema;
    this.row = answer.path("row").asText();
    this.staging = answer.path("staging").asText();
    this.writeId = answer.path("write_id").asLong();
    this.compression = answer.path("compression").asText();
    this.required = Json.texts(answer.path("required"));
    this.buckets = buckets;
    this.zone = zone;
  }
}
