package hmsbridge.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.HttpURLConnection;
import java.net.MalformedURLException;
import java.net.Proxy;
import java.net.SocketTimeoutException;
import java.net.URL;
import java.util.Properties;

/** Asks the plan service: one POST a question, JSON both ways (docs/format/plan-service.md). */
final class PlanClient {
  /** Planning lists directories and may wait for the metastore's database. */
  private static final int READ_TIMEOUT_MS = 600_000;
  /** Spark's scheduler waits for questions about leases. */
  private static final int LEASE_TIMEOUT_MS = 60_000;
  private static final int CONNECT_TIMEOUT_MS = 5_000;
  private static final int OK = 200;
  private static final int CHUNK = 1 << 16;

  private final String url;
  private final String token;
  private final String version = jarVersion();

  PlanClient(String url, String token) {
    this.url = url.endsWith("/") ? url.substring(0, url.length() - 1) : url;
    this.token = token;
  }

  /** Refuses a service of another version: the two are one program, halved. */
  void hello(String spark) {
    String server = ask("hello", Json.object().put("spark", spark)).path("server").asText();
    if (!server.equals(version)) {
      throw new PlanException(
          "Version",
          "hms-bridge's jar is of version " + version + ", its plan service of " + server
              + ": use the jar of the installed package (hms_bridge.spark.catalog.configure adds it,"
              + " 'hms-bridge spark plans' names it)",
          null);
    }
  }

  JsonNode ask(String verb, ObjectNode question) {
    int timeoutMs = verb.matches("read/(use|keep|end)") ? LEASE_TIMEOUT_MS : READ_TIMEOUT_MS;
    question.put("jar", version);
    try {
      return post(verb, Json.MAPPER.writeValueAsBytes(question), timeoutMs);
    } catch (SocketTimeoutException e) {
      throw unreachable("no answer to " + verb + " in time", e);
    } catch (IOException e) {
      throw unreachable(e.toString(), e);
    }
  }

  private JsonNode post(String verb, byte[] question, int timeoutMs) throws IOException {
    HttpURLConnection connection = open(verb);
    connection.setReadTimeout(timeoutMs);
    try (OutputStream out = connection.getOutputStream()) {
      out.write(question);
    }
    int status = connection.getResponseCode();
    byte[] body = body(status == OK ? connection.getInputStream() : connection.getErrorStream());
    if (status == OK) {
      return Json.MAPPER.readTree(body);
    }
    throw refusal(verb, status, body);
  }

  private HttpURLConnection open(String verb) throws IOException {
    HttpURLConnection connection;
    try {
      connection = (HttpURLConnection) new URL(url + "/v1/" + verb).openConnection(Proxy.NO_PROXY);
    } catch (MalformedURLException | ClassCastException e) {
      throw new IllegalArgumentException("no address of a plan service: " + url);
    }
    connection.setRequestMethod("POST");
    connection.setDoOutput(true);
    connection.setInstanceFollowRedirects(false);
    connection.setConnectTimeout(CONNECT_TIMEOUT_MS);
    connection.setRequestProperty("Authorization", "Bearer " + token);
    connection.setRequestProperty("Content-Type", "application/json");
    return connection;
  }

  /** Read to its end, so that the connection is kept. */
  private static byte[] body(InputStream stream) throws IOException {
    ByteArrayOutputStream body = new ByteArrayOutputStream();
    if (stream == null) {
      return body.toByteArray();
    }
    byte[] chunk = new byte[CHUNK];
    try (InputStream in = stream) {
      for (int n = in.read(chunk); n >= 0; n = in.read(chunk)) {
        body.write(chunk, 0, n);
      }
    }
    return body.toByteArray();
  }

  private PlanException refusal(String verb, int status, byte[] body) {
    JsonNode answer;
    try {
      answer = Json.MAPPER.readTree(body);
    } catch (IOException e) {
      answer = Json.object();
    }
    String otherwise = "the plan service answers " + verb + " with status " + status;
    return new PlanException(
        answer.path("error").asText(""), answer.path("message").asText(otherwise), null);
  }

  private PlanException unreachable(String reason, Throwable cause) {
    return new PlanException(
        PlanException.UNREACHABLE,
        "hms-bridge's plan service at " + url + " is gone (" + reason + "). It runs in the Python"
            + " process that called hms_bridge.spark.catalog.configure, or in 'hms-bridge spark"
            + " plans', for as long as its tables are read: start it again, and this session if the"
            + " address is another one",
        cause);
  }

  private static String jarVersion() {
    Properties properties = new Properties();
    try (InputStream in = PlanClient.class.getResourceAsStream("/hmsbridge/version.properties")) {
      if (in != null) {
        properties.load(in);
      }
    } catch (IOException e) {
      throw new IllegalStateException("hms-bridge's jar cannot be read", e);
    }
    String version = properties.getProperty("version");
    if (version == null) {
      throw new IllegalStateException("hms-bridge's jar lacks hmsbridge/version.properties");
    }
    return version;
  }
}
