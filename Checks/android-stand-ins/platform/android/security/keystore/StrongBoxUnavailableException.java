package android.security.keystore;

import java.security.ProviderException;

/** Since API 28. */
public class StrongBoxUnavailableException extends ProviderException {
    public StrongBoxUnavailableException() { super(); }

    public StrongBoxUnavailableException(String message) { super(message); }

    public StrongBoxUnavailableException(String message, Throwable cause) { super(message, cause); }

    public StrongBoxUnavailableException(Throwable cause) { super(cause); }
}
