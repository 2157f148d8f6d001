package com.google.android.play.core.integrity;

import com.google.android.gms.tasks.Task;

/** Requests Play Integrity tokens by classic requests, which need no preparation. */
public interface IntegrityManager {
    Task<IntegrityTokenResponse> requestIntegrityToken(IntegrityTokenRequest request);
}
