package hmsbridge.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.LinkedHashMap;
import java.util.Map;

/** What all questions and answers have in common. */
final class Json {
  static final ObjectMapper MAPPER = new ObjectMapper();

  private Json() {}

  static ObjectNode object() {
    return MAPPER.createObjectNode();
  }

  static JsonNode tree(Object value) {
    return MAPPER.valueToTree(value);
  }

  /** A list of texts; empty if it is missing. */
  static String[] texts(JsonNode list) {
    String[] texts = new String[list.size()];
    for (int i = 0; i < texts.length; i++) {
      texts[i] = list.get(i).asText();
    }
    return texts;
  }

  /** An object of texts, in its order; empty if it is missing. */
  static Map<String, String> textMap(JsonNode object) {
    Map<String, String> texts = new LinkedHashMap<>();
    object.fields().forEachRemaining(field -> texts.put(field.getKey(), field.getValue().asText()));
    return texts;
  }
}
