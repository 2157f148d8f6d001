package com.google.android.play.core.integrity;

import com.google.android.gms.common.api.ApiException;

public class IntegrityServiceException extends ApiException {
    private final int code;

    IntegrityServiceException(int code) { this.code = code; }

    public int getErrorCode() { return code; }
}
