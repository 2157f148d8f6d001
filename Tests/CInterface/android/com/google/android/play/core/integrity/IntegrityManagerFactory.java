package com.google.android.play.core.integrity;

import android.content.Context;
import com.google.android.gms.tasks.Task;

/** Answers with the nonce for a token, or fails with the code that the test sets. */
public class IntegrityManagerFactory {
    public static volatile int failure;

    public static IntegrityManager create(Context context) {
        int code = failure;
        return request -> new Task<IntegrityTokenResponse>() {
            @Override
            public IntegrityTokenResponse getResult() {
                return new IntegrityTokenResponse() {
                    @Override
                    public String token() { return request.nonce(); }
                };
            }

            @Override
            public Exception getException() { return code == 0 ? null : new IntegrityServiceException(code); }
        };
    }
}
