package android.security.keystore;

import java.security.ProviderException;

/** The hardware has no free operation. API 31. */
public class BackendBusyException extends ProviderException {
    private final long backOffHintMillis;

    public BackendBusyException(long backOffHintMillis) { this.backOffHintMillis = backOffHintMillis; }

    public long getBackOffHintMillis() { return backOffHintMillis; }
}
