package com.google.android.play.core.integrity;

import com.google.android.gms.common.api.ApiException;

public class IntegrityServiceException extends ApiException {
    private final int errorCode;

    public IntegrityServiceException(int errorCode) {
        super(errorCode);
        this.errorCode = errorCode;
    }

    public int getErrorCode() { return errorCode; }
}
