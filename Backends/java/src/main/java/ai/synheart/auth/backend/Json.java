package ai.synheart.auth.backend;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A small, strict reader and writer of JSON (RFC 8259). Values are {@code Map}, {@code List}, {@code String}, {@code Long},
 * {@code Double}, {@code Boolean} and {@code null}.
 */
final class Json {
    private static final int MAXIMUM_DEPTH = 16;

    /** The text is no JSON, has a member twice, or is nested too deeply. */
    static final class Malformed extends Exception {
        private static final long serialVersionUID = 1;
    }

    private final String text;
    private int at;

    private Json(String text) {
        this.text = text;
    }

    /** Parses the JSON object in these bytes. */
    static Map<String, Object> object(byte[] bytes) throws Malformed {
        try {
            Json reader = new Json(StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString());
            Object value = reader.value(0);
            reader.skipSpace();
            if (reader.at != reader.text.length()) throw new Malformed();
            return asObject(value);
        } catch (CharacterCodingException error) {
            throw new Malformed();
        }
    }

    static Map<String, Object> asObject(Object value) throws Malformed {
        if (!(value instanceof Map<?, ?> map)) throw new Malformed();
        Map<String, Object> object = new LinkedHashMap<>();
        map.forEach((name, member) -> object.put((String) name, member));
        return object;
    }

    private Object value(int depth) throws Malformed {
        if (depth > MAXIMUM_DEPTH) throw new Malformed();
        skipSpace();
        return switch (peek()) {
            case '{' -> members(depth);
            case '[' -> elements(depth);
            case '"' -> string();
            case 't' -> word("true", true);
            case 'f' -> word("false", false);
            case 'n' -> word("null", null);
            default -> number();
        };
    }

    private Map<String, Object> members(int depth) throws Malformed {
        Map<String, Object> members = new LinkedHashMap<>();
        at++;
        skipSpace();
        if (take('}')) return members;
        do {
            skipSpace();
            String name = string();
            skipSpace();
            expect(':');
            if (members.containsKey(name)) throw new Malformed();
            members.put(name, value(depth + 1));
            skipSpace();
        } while (take(','));
        expect('}');
        return members;
    }

    private List<Object> elements(int depth) throws Malformed {
        List<Object> elements = new ArrayList<>();
        at++;
        skipSpace();
        if (take(']')) return elements;
        do {
            elements.add(value(depth + 1));
            skipSpace();
        } while (take(','));
        expect(']');
        return elements;
    }

    private String string() throws Malformed {
        expect('"');
        StringBuilder found = new StringBuilder();
        while (peek() != '"') {
            char character = text.charAt(at++);
            if (character < ' ') throw new Malformed();
            found.append(character == '\\' ? escape() : character);
        }
        at++;
        return found.toString();
    }

    private char escape() throws Malformed {
        char character = peek();
        at++;
        int simple = "\"\\/bfnrt".indexOf(character);
        if (simple >= 0) return "\"\\/\b\f\n\r\t".charAt(simple);
        if (character != 'u' || at + 4 > text.length() || !text.substring(at, at + 4).matches("[0-9A-Fa-f]{4}")) throw new Malformed();
        at += 4;
        return (char) Integer.parseInt(text.substring(at - 4, at), 16);
    }

    private Object number() throws Malformed {
        int start = at;
        while (at < text.length() && "+-.0123456789eE".indexOf(text.charAt(at)) >= 0) at++;
        String found = text.substring(start, at);
        if (found.matches("-?(0|[1-9][0-9]{0,17})")) return Long.valueOf(found);
        if (!found.matches("-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?")) throw new Malformed();
        return Double.valueOf(found);
    }

    private Object word(String word, Object value) throws Malformed {
        if (!text.startsWith(word, at)) throw new Malformed();
        at += word.length();
        return value;
    }

    private char peek() throws Malformed {
        if (at >= text.length()) throw new Malformed();
        return text.charAt(at);
    }

    private boolean take(char wanted) {
        if (at >= text.length() || text.charAt(at) != wanted) return false;
        at++;
        return true;
    }

    private void expect(char wanted) throws Malformed {
        if (!take(wanted)) throw new Malformed();
    }

    private void skipSpace() {
        while (at < text.length() && " \t\r\n".indexOf(text.charAt(at)) >= 0) at++;
    }

    /** The JSON text of a value. */
    static String text(Object value) {
        if (value instanceof String string) return quoted(string);
        StringBuilder text = new StringBuilder();
        if (value instanceof Map<?, ?> map) {
            map.forEach((name, member) ->
                text.append(text.isEmpty() ? "" : ",").append(quoted((String) name)).append(':').append(text(member)));
            return "{" + text + "}";
        }
        if (value instanceof List<?> list) {
            list.forEach(element -> text.append(text.isEmpty() ? "" : ",").append(text(element)));
            return "[" + text + "]";
        }
        return String.valueOf(value);
    }

    private static String quoted(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (char character : text.toCharArray()) {
            if (character < ' ' || character == '"' || character == '\\' || character > '~') {
                quoted.append(String.format("\\u%04x", (int) character));
            } else {
                quoted.append(character);
            }
        }
        return quoted.append('"').toString();
    }
}
