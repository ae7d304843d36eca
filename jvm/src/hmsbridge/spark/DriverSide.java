package hmsbridge.spark;

import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.util.SerializableConfiguration;

/** What reading and writing ask of the driver's Spark. */
final class DriverSide {
  private static final int DESCRIPTION_MAX = 200;

  private DriverSide() {}

  /** Of Hadoop, for the executors. */
  static Broadcast<SerializableConfiguration> configuration(SparkSession session) {
    return JavaSparkContext.fromSparkContext(session.sparkContext())
        .broadcast(new SerializableConfiguration(session.sessionState().newHadoopConf()));
  }

  /** For whom a transaction is. */
  static void introduce(ObjectNode question, SparkContext context) {
    question.put("application", context.applicationId());
    question.put("description", description(context));
  }

  /** The user's text for the jobs, else the call, as Spark's pages show it, else the program. */
  private static String description(SparkContext context) {
    for (String property : new String[] {"spark.job.description", "callSite.short"}) {
      String text = context.getLocalProperty(property);
      if (text != null) {
        return text.substring(0, Math.min(text.length(), DESCRIPTION_MAX));
      }
    }
    return context.appName();
  }
}
