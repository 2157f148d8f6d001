package android.security.keystore;

import android.security.KeyStoreException;
import java.security.ProviderException;

/** API 28. */
public class StrongBoxUnavailableException extends ProviderException {
    public StrongBoxUnavailableException(String message, KeyStoreException cause) { super(message, cause); }
}
