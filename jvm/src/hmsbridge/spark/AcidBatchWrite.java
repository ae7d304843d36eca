package hmsbridge.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Timer;
import java.util.TimerTask;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.types.StructType;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One write, on the driver: a transaction of the plan service, from the moment when tasks are about
 * to run until all their files are handed over, or none.
 */
final class AcidBatchWrite implements BatchWrite {
  private static final Logger LOG = LoggerFactory.getLogger(AcidBatchWrite.class);
  private static final long KEEP_MS = 20_000;

  private final AcidTable table;
  private final StructType schema;
  private final SparkSession session = SparkSession.active();
  private final SessionZone zone = SessionZone.current();
  /** The service's name for it; null before it begins and when it has ended. */
  private String name;
  private Timer keeper;

  AcidBatchWrite(AcidTable table, StructType schema) {
    this.table = table;
    this.schema = schema;
  }

  @Override
  public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
    ObjectNode question = table.question();
    DriverSide.introduce(question, session.sparkContext());
    JsonNode answer = table.client.ask("write/begin", question);
    name = answer.path("write").asText();
    keeper = new Timer("hms-bridge-write", true);
    keeper.schedule(new Keep(), KEEP_MS, KEEP_MS);
    return new AcidWriterFactory(
        new WriteSpec(schema, answer, table.buckets, zone.id()), DriverSide.configuration(session));
  }

  @Override
  public void commit(WriterCommitMessage[] messages) {
    ArrayNode files = Json.MAPPER.createArrayNode();
    for (WriterCommitMessage message : messages) {
      files.addAll(WrittenFiles.of(message));
    }
    ObjectNode question = Json.object().put("write", name);
    question.set("files", files);
    keeper.cancel();
    try {
      table.client.ask("write/commit", question);
    } catch (PlanException e) {
      throw e.is(PlanException.UNREACHABLE) ? unsure(e) : e;
    }
    name = null;
  }

  private PlanException unsure(PlanException cause) {
    return new PlanException(
        PlanException.UNREACHABLE,
        "whether the rows are in " + table.name() + " is not known, so look before you write them"
            + " again: " + cause.getMessage(),
        cause);
  }

  /** Also after a commit that failed. What is not told ends by itself: nobody keeps it. */
  @Override
  public void abort(WriterCommitMessage[] messages) {
    if (name == null) {
      return;
    }
    keeper.cancel();
    try {
      table.client.ask("write/abort", Json.object().put("write", name));
    } catch (PlanException e) {
      LOG.warn("write/abort failed: {}", e.getMessage());
    }
    name = null;
  }

  private final class Keep extends TimerTask {
    /** What fails is seen by the commit. */
    @Override
    public void run() {
      try {
        table.client.ask("write/keep", Json.object().put("write", name));
      } catch (RuntimeException e) {
        LOG.warn("write/keep failed: {}", e.getMessage());
      }
    }
  }
}
