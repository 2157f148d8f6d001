package com.google.android.gms.common.api;

public class ApiException extends Exception {
    private final int statusCode;

    public ApiException(int statusCode) {
        super(statusCode + ":");
        this.statusCode = statusCode;
    }

    public int getStatusCode() { return statusCode; }
}
