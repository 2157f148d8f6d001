package com.google.android.play.core.integrity;

import com.google.android.gms.tasks.Task;

/** Makes classic requests. */
public interface IntegrityManager {
    Task<IntegrityTokenResponse> requestIntegrityToken(IntegrityTokenRequest request);
}
