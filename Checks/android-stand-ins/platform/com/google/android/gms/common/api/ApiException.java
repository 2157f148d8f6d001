package com.google.android.gms.common.api;

/** A failed call to Google Play services. Google's own constructor takes a {@code Status}, this one only its code. */
public class ApiException extends Exception {
    private final int statusCode;

    protected ApiException(int statusCode) {
        super(statusCode + ":");
        this.statusCode = statusCode;
    }

    public int getStatusCode() { return statusCode; }
}
