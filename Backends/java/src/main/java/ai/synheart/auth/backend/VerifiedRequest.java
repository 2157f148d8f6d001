package ai.synheart.auth.backend;

import jakarta.servlet.AsyncContext;
import jakarta.servlet.ReadListener;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletInputStream;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.ServletResponseWrapper;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.Part;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.URLDecoder;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.Enumeration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** A request that passed the filter. Its body is read from memory. */
final class VerifiedRequest extends UnclaimedRequest {
    static final int PAIR_LIMIT = 10_000;

    private final HttpServletRequest received;
    private final ServletResponse answer;
    private final byte[] body;
    private ServletInputStream stream;
    private BufferedReader reader;
    private Map<String, String[]> parameters;

    VerifiedRequest(HttpServletRequest received, ServletResponse answer, byte[] body) {
        super(received);
        this.received = received;
        this.answer = answer;
        this.body = body;
    }

    /** Clears the cached parameters: a dispatcher replaces the wrapped request by one that has parameters of its own. */
    @Override
    public void setRequest(ServletRequest request) {
        super.setRequest(request);
        parameters = null;
    }

    /** Without this override, an asynchronous dispatch would get the original request, whose body was already read. */
    @Override
    public AsyncContext startAsync() {
        // Without this filter, the server would start with its own response, which nothing wraps. Start with that one, because
        // the filters of the asynchronous dispatch wrap it again.
        ServletResponse original = answer;
        while (original instanceof ServletResponseWrapper wrapper) original = wrapper.getResponse();
        return startAsync(this, original);
    }

    @Override
    public ServletInputStream getInputStream() {
        if (reader != null) throw new IllegalStateException("getReader was called");
        if (stream == null) stream = new Memory(body);
        return stream;
    }

    @Override
    public BufferedReader getReader() throws IOException {
        if (stream != null) throw new IllegalStateException("getInputStream was called");
        if (reader == null) reader = new BufferedReader(new InputStreamReader(new ByteArrayInputStream(body), charset()));
        return reader;
    }

    private Charset charset() {
        String name = getCharacterEncoding();
        try {
            return name == null ? StandardCharsets.UTF_8 : Charset.forName(name);
        } catch (IllegalArgumentException error) {
            return StandardCharsets.UTF_8;
        }
    }

    /**
     * The parameters of the query and of the body that was read. The server's own parameters are not used, because the
     * server may have made them from a body that was read earlier. A dispatcher's parameters come first, as the server
     * would order them.
     */
    @Override
    public Map<String, String[]> getParameterMap() {
        if (parameters != null) return parameters;
        Map<String, List<String>> lists = new LinkedHashMap<>();
        Map<String, String[]> before = received.getParameterMap();
        super.getParameterMap().forEach((name, values) -> {
            int added = values.length - before.getOrDefault(name, new String[0]).length;
            if (added > 0) lists.put(name, new ArrayList<>(List.of(values).subList(0, added)));
        });
        if (received.getQueryString() != null) addPairs(received.getQueryString(), StandardCharsets.UTF_8, lists);
        if (isForm(this)) addPairs(new String(body, StandardCharsets.ISO_8859_1), charset(), lists);
        Map<String, String[]> found = new LinkedHashMap<>();
        lists.forEach((name, values) -> found.put(name, values.toArray(String[]::new)));
        parameters = Collections.unmodifiableMap(found);
        return parameters;
    }

    /** Whether the body is a form of more than {@link #PAIR_LIMIT} pairs. The server's limit does not apply: this class parses the form. */
    static boolean hasTooManyPairs(HttpServletRequest received, byte[] body) {
        if (!isForm(received)) return false;
        int pairs = 1;
        for (byte character : body) if (character == '&') pairs++;
        return pairs > PAIR_LIMIT;
    }

    private static boolean isForm(HttpServletRequest request) {
        String type = request.getContentType();
        return type != null && type.split(";", 2)[0].strip().toLowerCase(Locale.ROOT).equals("application/x-www-form-urlencoded")
            && request.getMethod().equals("POST");
    }

    private static void addPairs(String text, Charset charset, Map<String, List<String>> lists) {
        for (String pair : text.split("&")) {
            String[] parts = pair.split("=", 2);
            if (pair.isEmpty()) continue;
            lists.computeIfAbsent(decoded(parts[0], charset), name -> new ArrayList<>())
                .add(parts.length < 2 ? "" : decoded(parts[1], charset));
        }
    }

    private static String decoded(String text, Charset charset) {
        try {
            return URLDecoder.decode(text, charset);
        } catch (IllegalArgumentException error) {
            return text;
        }
    }

    @Override
    public String getParameter(String name) {
        String[] values = getParameterMap().get(name);
        return values == null ? null : values[0];
    }

    @Override
    public String[] getParameterValues(String name) {
        String[] values = getParameterMap().get(name);
        return values == null ? null : values.clone();
    }

    @Override
    public Enumeration<String> getParameterNames() {
        return Collections.enumeration(getParameterMap().keySet());
    }

    @Override
    public Collection<Part> getParts() throws ServletException {
        throw new ServletException("the body was read to verify it: parse multipart bodies from getInputStream");
    }

    @Override
    public Part getPart(String name) throws ServletException {
        throw new ServletException("the body was read to verify it: parse multipart bodies from getInputStream");
    }

    @Override
    public int getContentLength() {
        return body.length;
    }

    @Override
    public long getContentLengthLong() {
        return body.length;
    }

    /** A stream over the body, which is already in memory. */
    private static final class Memory extends ServletInputStream {
        private final ByteArrayInputStream bytes;

        Memory(byte[] body) {
            bytes = new ByteArrayInputStream(body);
        }

        @Override
        public int read() {
            return bytes.read();
        }

        @Override
        public int read(byte[] target, int offset, int length) {
            return bytes.read(target, offset, length);
        }

        @Override
        public boolean isFinished() {
            return bytes.available() == 0;
        }

        @Override
        public boolean isReady() {
            return true;
        }

        @Override
        public void setReadListener(ReadListener listener) {
            try {
                if (!isFinished()) listener.onDataAvailable();
                listener.onAllDataRead();
            } catch (IOException error) {
                listener.onError(error);
            }
        }
    }
}
