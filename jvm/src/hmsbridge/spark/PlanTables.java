package hmsbridge.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Namespaces and ACID tables, as the plan service of a catalog's options knows them. */
final class PlanTables {
  private static final int IDLE_SECONDS = 60;
  private static final String OTHER = "other";

  private final String catalog;
  private final Map<String, String> settings;
  private final PlanClient client;
  private final int idleSeconds;

  /** Says hello to the service that the session's settings name. */
  PlanTables(String catalog) {
    this.catalog = catalog;
    settings = settings(catalog);
    CaseInsensitiveStringMap options = new CaseInsensitiveStringMap(settings);
    String url = options.get("url");
    String token = token(options);
    if (url == null || token == null) {
      throw new IllegalArgumentException(
          "spark.sql.catalog." + catalog + (url == null ? ".url" : ".token") + " is not set:"
              + " call hms_bridge.spark.catalog.configure, which starts the plan service and sets"
              + " it, or take the settings that 'hms-bridge spark plans' prints");
    }
    client = new PlanClient(url, token);
    client.hello(SparkSession.active().version());
    idleSeconds = Math.max(1, options.getInt("idle", IDLE_SECONDS));
  }

  private static Map<String, String> settings(String catalog) {
    Map<String, String> settings = new HashMap<>();
    for (String option : new String[] {"url", "token", "token-file", "idle"}) {
      String key = "spark.sql.catalog." + catalog + "." + option;
      String value = SQLConf.get().getConfString(key, null);
      if (value != null) {
        settings.put(option, value);
      }
    }
    return settings;
  }

  /** Itself, unless the session's settings name another service by now: Spark keeps catalogs. */
  PlanTables current() {
    return settings(catalog).equals(settings) ? this : new PlanTables(catalog);
  }

  private String token(CaseInsensitiveStringMap options) {
    String file = options.get("token-file");
    if (options.containsKey("token") || file == null) {
      return options.get("token");
    }
    try {
      return new String(Files.readAllBytes(Paths.get(file)), StandardCharsets.UTF_8).trim();
    } catch (IOException e) {
      throw new IllegalArgumentException(
          "spark.sql.catalog." + catalog + ".token-file cannot be read: " + e + ": name the file that"
              + " 'hms-bridge spark plans' says, or a copy of it",
          e);
    }
  }

  String[][] namespaces() {
    String[] names = Json.texts(client.ask("namespace/list", Json.object()).path("names"));
    String[][] namespaces = new String[names.length][];
    for (int i = 0; i < names.length; i++) {
      namespaces[i] = new String[] {names[i]};
    }
    return namespaces;
  }

  Map<String, String> namespace(String[] namespace) throws NoSuchNamespaceException {
    return Json.textMap(askNamespace("namespace/get", namespace).path("properties"));
  }

  /** The tables that can be loaded: plain ones and views are those of Spark's own catalog. */
  Identifier[] list(String[] namespace) throws NoSuchNamespaceException {
    List<Identifier> tables = new ArrayList<>();
    for (JsonNode table : askNamespace("table/list", namespace).path("tables")) {
      if (!table.path("kind").asText().equals(OTHER)) {
        tables.add(Identifier.of(namespace, table.path("name").asText()));
      }
    }
    return tables.toArray(new Identifier[0]);
  }

  private JsonNode askNamespace(String verb, String[] namespace) throws NoSuchNamespaceException {
    if (namespace.length != 1) {
      throw new NoSuchNamespaceException(namespace);
    }
    try {
      return client.ask(verb, Json.object().put("namespace", namespace[0]));
    } catch (PlanException e) {
      if (e.is(PlanException.NO_SUCH_NAMESPACE)) {
        throw new NoSuchNamespaceException(namespace);
      }
      throw e;
    }
  }

  /** Null for a table that is not ACID. */
  AcidTable load(Identifier identifier) throws NoSuchTableException {
    if (identifier.namespace().length != 1) {
      throw new NoSuchTableException(identifier);
    }
    ObjectNode question = Json.object().put("namespace", identifier.namespace()[0]);
    question.put("name", identifier.name()).put("timestamps", timestamps());
    JsonNode answer;
    try {
      answer = client.ask("table/load", question);
    } catch (PlanException e) {
      if (e.is(PlanException.NO_SUCH_TABLE) || e.is(PlanException.NO_SUCH_NAMESPACE)) {
        throw new NoSuchTableException(identifier);
      }
      throw e;
    }
    boolean isOther = answer.path("kind").asText().equals(OTHER);
    return isOther ? null : new AcidTable(catalog, identifier, answer, client, idleSeconds);
  }

  /** Hive's timestamp is a wall clock; a session chooses what SQL's TIMESTAMP is. */
  private static String timestamps() {
    boolean isInstant = SQLConf.get().timestampType().equals(DataTypes.TimestampType);
    return isInstant ? "timestamp" : "timestamp_ntz";
  }
}
