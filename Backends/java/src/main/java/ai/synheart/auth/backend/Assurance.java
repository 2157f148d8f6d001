package ai.synheart.auth.backend;

import java.util.List;
import java.util.Map;

/** What was proven about the app and the device's key at registration. */
public record Assurance(String app, String key, List<String> labels) {
    /** The member {@code assurance} of an object, null if it is malformed. */
    static Assurance of(Map<String, Object> members) {
        if (!(members.get("assurance") instanceof Map<?, ?> value)) return null;
        if (!(value.get("app") instanceof String app) || !(value.get("key") instanceof String key)) return null;
        if (!(value.get("labels") instanceof List<?> labels) || !labels.stream().allMatch(String.class::isInstance)) return null;
        return new Assurance(app, key, labels.stream().map(String.class::cast).toList());
    }
}
