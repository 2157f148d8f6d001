package com.google.android.play.core.integrity;

import com.google.android.gms.common.api.ApiException;

public class StandardIntegrityException extends ApiException {
    private final int errorCode;

    public StandardIntegrityException(int errorCode) {
        super(errorCode);
        this.errorCode = errorCode;
    }

    public int getErrorCode() { return errorCode; }
}
