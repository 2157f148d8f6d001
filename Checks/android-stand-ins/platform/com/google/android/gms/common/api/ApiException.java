package com.google.android.gms.common.api;

/** Google's own class is constructed from a {@code Status}. */
public class ApiException extends Exception {
    private final int statusCode;

    protected ApiException(int statusCode) {
        super(statusCode + ":");
        this.statusCode = statusCode;
    }

    public int getStatusCode() { return statusCode; }
}
