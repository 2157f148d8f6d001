package com.google.android.play.core.integrity;

import com.google.android.gms.common.api.ApiException;

public class IntegrityServiceException extends ApiException {
    private final int errorCode;
    private final transient Throwable cause;

    IntegrityServiceException(int errorCode, Throwable cause) {
        super(errorCode);
        if (errorCode == 0) throw new IllegalArgumentException("errorCode should not be 0.");
        this.errorCode = errorCode;
        this.cause = cause;
    }

    public int getErrorCode() { return errorCode; }

    @Override
    public final synchronized Throwable getCause() { return cause; }
}
