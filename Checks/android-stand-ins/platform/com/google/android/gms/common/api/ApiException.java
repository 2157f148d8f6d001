package com.google.android.gms.common.api;

/** Google's own classes make one from a {@code Status}. */
public class ApiException extends Exception {
    private final int statusCode;

    protected ApiException(int statusCode) {
        super(statusCode + ":");
        this.statusCode = statusCode;
    }

    public int getStatusCode() { return statusCode; }
}
