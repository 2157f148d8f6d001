package android.security.keystore;

import androidx.annotation.NonNull;
import java.security.ProviderException;

/** The hardware has no free operation slot. Since API 31. */
public class BackendBusyException extends ProviderException {
    private final long backOffHintMillis;

    public BackendBusyException(long backOffHintMillis) {
        super("The keystore backend has no operation slots available. Retry later.");
        this.backOffHintMillis = backOffHintMillis;
    }

    public BackendBusyException(long backOffHintMillis, @NonNull String message) {
        super(message);
        this.backOffHintMillis = backOffHintMillis;
    }

    public BackendBusyException(long backOffHintMillis, @NonNull String message, @NonNull Throwable cause) {
        super(message, cause);
        this.backOffHintMillis = backOffHintMillis;
    }

    public long getBackOffHintMillis() { return backOffHintMillis; }
}
