package android.security.keystore;

import java.security.InvalidKeyException;

public class UserNotAuthenticatedException extends InvalidKeyException {
    public UserNotAuthenticatedException(String message, Throwable cause) { super(message, cause); }
}
