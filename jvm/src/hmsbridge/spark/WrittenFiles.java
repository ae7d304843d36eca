package hmsbridge.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.execution.streaming.sources.PackedRowCommitMessage;
import org.apache.spark.unsafe.types.UTF8String;

/** The files of a task, on their way to the driver, as write/commit has them. */
final class WrittenFiles {
  private final ArrayNode files = Json.MAPPER.createArrayNode();

  int count() {
    return files.size();
  }

  void add(EventWriter file, JsonNode partition, int bucket, int statement)
      throws IOException {
    ArrayNode entry = files.addArray();
    entry.add(file.path()).add(partition).add(bucket).add(statement);
    entry.add(file.rowCount()).add(file.sizeBytes());
  }

  /** In a class of Spark's: a class of a jar that was added to a session has two loaders. */
  WriterCommitMessage message() {
    Object[] texts = {UTF8String.fromString(files.toString())};
    return new PackedRowCommitMessage(new InternalRow[] {new GenericInternalRow(texts)});
  }

  static ArrayNode of(WriterCommitMessage message) {
    InternalRow[] rows = ((PackedRowCommitMessage) message).rows();
    try {
      return (ArrayNode) Json.MAPPER.readTree(rows[0].getUTF8String(0).toString());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
