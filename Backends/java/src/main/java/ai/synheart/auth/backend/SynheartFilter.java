package ai.synheart.auth.backend;

import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * Lets a request reach servlets only if it is verified, or passes in observe mode. {@link #identityOf} tells them who signed.
 *
 * <p>Map it before every filter that reads bodies or parameters. A request's body is read whole, up to the limit, and handed on.
 */
public final class SynheartFilter implements Filter {
    private static final String FOUND = SynheartFilter.class.getName() + ".found";

    private final Verifier verifier;

    public SynheartFilter(Verifier verifier) {
        this.verifier = verifier;
    }

    /** The result of the filter for a request; null if the filter did not judge it. */
    public static Outcome.Verification verificationOf(ServletRequest request) {
        return request.getAttribute(FOUND) instanceof Outcome.Verification found ? found : null;
    }

    /** The device that signed a request; null for a request that passes only because its app is in observe mode. */
    public static Identity identityOf(ServletRequest request) {
        Outcome.Verification found = verificationOf(request);
        return found == null ? null : found.identity();
    }

    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain) throws IOException, ServletException {
        if (!(request instanceof HttpServletRequest received) || !(response instanceof HttpServletResponse answer)) {
            throw new ServletException("only HTTP requests can be verified");
        }
        // Whether this is a dispatch to an error page, a forward, or a request that continues asynchronously.
        boolean isInner = received.getDispatcherType() != DispatcherType.REQUEST;
        if (isInner || verificationOf(received) != null) {
            // A server may dispatch the original request, with identity headers that the client sent. Hide those headers.
            chain.doFilter(received instanceof UnclaimedRequest ? received : new UnclaimedRequest(received), answer);
            return;
        }
        byte[] body = null;
        Outcome found;
        try {
            if (isReadBefore(received)) {
                found = verifier.impossible("the body was read before it was verified: map this filter before the others");
            } else {
                body = body(received);
                found = body == null ? verifier.tooLarge() : verify(received, body);
            }
        } catch (IOException error) {
            // The client disconnected, so it does not wait for an answer.
            answer.sendError(HttpServletResponse.SC_BAD_REQUEST);
            return;
        }
        if (found instanceof Outcome.Verification) {
            received.setAttribute(FOUND, found);
            chain.doFilter(new VerifiedRequest(received, answer, body), answer);
        } else if (found instanceof Outcome.Refusal refusal) {
            answer.setStatus(refusal.status());
            refusal.headers().forEach(answer::setHeader);
            answer.setContentLength(refusal.body().length);
            answer.getOutputStream().write(refusal.body());
        }
    }

    private Outcome verify(HttpServletRequest received, byte[] body) throws ServletException {
        if (VerifiedRequest.hasTooManyPairs(received, body)) return verifier.tooManyParameters();
        List<Header> headers = new ArrayList<>();
        for (String name : Collections.list(received.getHeaderNames())) {
            for (String value : Collections.list(received.getHeaders(name))) headers.add(new Header(name, value));
        }
        String query = received.getQueryString();
        String target = received.getRequestURI() + (query == null ? "" : "?" + query);
        try {
            return verifier.verify(new Incoming(received.getMethod(), target, headers, body, received.getRemoteAddr()));
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            return verifier.impossible("interrupted while the auth service was asked");
        }
    }

    /** Whether another filter has already read the body, from its stream or as the parameters of a form. */
    private static boolean isReadBefore(HttpServletRequest received) throws IOException {
        boolean hasBody = received.getContentLengthLong() > 0 || received.getHeader("Transfer-Encoding") != null;
        return hasBody && received.getInputStream().isFinished();
    }

    /** The whole body, null if it is over the limit. */
    private byte[] body(HttpServletRequest received) throws IOException {
        int limit = verifier.bodyLimit();
        if (received.getContentLengthLong() > limit) return null;
        InputStream input = received.getInputStream();
        byte[] body = input.readNBytes(limit);
        return input.read() < 0 ? body : null;
    }
}
