package ai.synheart.auth.backend;

import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import java.util.Collections;
import java.util.Enumeration;

/** A request without the identity headers that a client may have sent. */
class UnclaimedRequest extends HttpServletRequestWrapper {
    UnclaimedRequest(HttpServletRequest received) {
        super(received);
    }

    @Override
    public String getHeader(String name) {
        return Header.isReserved(name) ? null : super.getHeader(name);
    }

    @Override
    public Enumeration<String> getHeaders(String name) {
        return Header.isReserved(name) ? Collections.emptyEnumeration() : super.getHeaders(name);
    }

    @Override
    public Enumeration<String> getHeaderNames() {
        return Collections.enumeration(
            Collections.list(super.getHeaderNames()).stream().filter(name -> !Header.isReserved(name)).toList());
    }
}
