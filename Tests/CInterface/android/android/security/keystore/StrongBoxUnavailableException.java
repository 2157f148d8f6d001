package android.security.keystore;

import java.security.ProviderException;

public class StrongBoxUnavailableException extends ProviderException {}
