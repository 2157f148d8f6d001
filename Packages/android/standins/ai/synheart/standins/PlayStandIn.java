package ai.synheart.standins;

import android.content.Context;
import com.google.android.gms.tasks.Task;
import com.google.android.play.core.integrity.IntegrityManager;
import com.google.android.play.core.integrity.IntegrityServiceException;
import com.google.android.play.core.integrity.IntegrityTokenResponse;
import com.google.android.play.core.integrity.StandardIntegrityException;
import com.google.android.play.core.integrity.StandardIntegrityManager;
import com.google.android.play.core.integrity.StandardIntegrityManager.StandardIntegrityToken;
import com.google.android.play.core.integrity.StandardIntegrityManager.StandardIntegrityTokenProvider;
import com.google.android.play.core.integrity.model.IntegrityErrorCode;
import com.google.android.play.core.integrity.model.StandardIntegrityErrorCode;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;

/** Play Integrity on the phone: the Play Store's part. A test tells it how to fail, in Google's own codes. */
public final class PlayStandIn {
    private static final int NEVER = Integer.MIN_VALUE;

    private final String packageName;
    /** Google, which makes the tokens. */
    public volatile GoogleStandIn google = new GoogleStandIn();
    /** How often a provider was prepared, and how often a token was asked for. */
    public final AtomicInteger warmUps = new AtomicInteger(), requests = new AtomicInteger();
    private final Deque<Integer> warmUpFaults = new ArrayDeque<>(), requestFaults = new ArrayDeque<>();
    private volatile int lastingFault;
    private volatile int generation;

    PlayStandIn(String packageName) { this.packageName = packageName; }

    /** The next token requests fail with these codes, in this order; 0 lets one through, {@link #neverAnswers} does not answer. */
    public void failRequests(int... codes) { synchronized (requestFaults) { for (int code : codes) requestFaults.add(code); } }

    /** The next warm-ups fail with these codes. */
    public void failWarmUps(int... codes) { synchronized (warmUpFaults) { for (int code : codes) warmUpFaults.add(code); } }

    /** Everything fails with this code; 0 ends that. */
    public void failAlways(int code) { lastingFault = code; }

    /** No answer, ever. */
    public static int neverAnswers() { return NEVER; }

    /** Providers that were prepared until now are invalid from now on, as after hours. */
    public void invalidateProviders() { generation++; }

    public IntegrityManager classic(Context context) {
        return request -> {
            requests.incrementAndGet();
            String nonce = request.nonce();
            int fault = fault(requestFaults);
            if (fault == 0 && nonce.length() < 16) fault = IntegrityErrorCode.NONCE_TOO_SHORT;
            if (fault == 0 && nonce.length() > 500) fault = IntegrityErrorCode.NONCE_TOO_LONG;
            if (fault == 0 && !nonce.matches("[A-Za-z0-9_-]+=*")) fault = IntegrityErrorCode.NONCE_IS_NOT_BASE64;
            int code = fault;
            return answer(code, () -> new IntegrityTokenResponse() {
                @Override
                public String token() { return google.classicToken(packageName, nonce); }
            }, new IntegrityServiceException(code));
        };
    }

    public StandardIntegrityManager standard(Context context) {
        return prepared -> {
            warmUps.incrementAndGet();
            int fault = fault(warmUpFaults);
            if (fault == 0 && prepared.cloudProjectNumber() <= 0) fault = StandardIntegrityErrorCode.CLOUD_PROJECT_NUMBER_IS_INVALID;
            int mine = generation;
            StandardIntegrityTokenProvider provider = request -> {
                requests.incrementAndGet();
                String hash = request.requestHash();
                int code = fault(requestFaults);
                if (code == 0 && mine != generation) code = StandardIntegrityErrorCode.INTEGRITY_TOKEN_PROVIDER_INVALID;
                if (code == 0 && hash.length() > 500) code = StandardIntegrityErrorCode.REQUEST_HASH_TOO_LONG;
                return answer(code, () -> new StandardIntegrityToken() {
                    @Override
                    public String token() { return google.standardToken(packageName, hash); }
                }, new StandardIntegrityException(code));
            };
            return answer(fault, () -> provider, new StandardIntegrityException(fault));
        };
    }

    private int fault(Deque<Integer> faults) {
        synchronized (faults) { return faults.isEmpty() ? lastingFault : faults.poll(); }
    }

    private static <Result> Task<Result> answer(int code, Supplier<Result> result, Exception failure) {
        if (code == NEVER) return new Task<>();
        return code == 0 ? Task.of(result.get()) : Task.failed(failure);
    }
}
