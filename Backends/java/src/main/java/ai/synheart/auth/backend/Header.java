package ai.synheart.auth.backend;

import java.util.List;
import java.util.Locale;

/** A header line of a request. */
public record Header(String name, String value) {
    /** The values of a header, line by line. */
    static List<String> values(List<Header> headers, String name) {
        return headers.stream().filter(header -> header.name.equalsIgnoreCase(name)).map(header -> header.value.strip()).toList();
    }

    /** Whether a header is passed on to the service. Cookies and credentials of the client are not. */
    boolean isAskedAbout() {
        String lower = name.toLowerCase(Locale.ROOT);
        if (lower.startsWith("x-synheart-")) return !isReserved(name);
        return List.of("x-app-id", "x-device-id", "content-digest", "signature-input", "signature").contains(lower);
    }

    /**
     * Whether a handler could take the header for a verified identity. Every character except letters and digits counts
     * as {@code -}, because some frameworks change characters such as {@code _} and a dot to {@code -}.
     */
    static boolean isReserved(String name) {
        String lower = name.toLowerCase(Locale.ROOT).replaceAll("[^a-z0-9]", "-");
        return lower.startsWith("x-synheart-verified-") || lower.equals("x-synheart-identity");
    }
}
