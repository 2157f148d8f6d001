package ai.synheart.standins;

import android.content.Context;
import com.google.android.gms.tasks.Task;
import com.google.android.play.core.integrity.IntegrityManager;
import com.google.android.play.core.integrity.IntegrityTokenResponse;
import com.google.android.play.core.integrity.StandInFailures;
import com.google.android.play.core.integrity.StandardIntegrityManager;
import com.google.android.play.core.integrity.StandardIntegrityManager.StandardIntegrityToken;
import com.google.android.play.core.integrity.StandardIntegrityManager.StandardIntegrityTokenProvider;
import com.google.android.play.core.integrity.model.IntegrityErrorCode;
import com.google.android.play.core.integrity.model.StandardIntegrityErrorCode;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.IntFunction;
import java.util.function.Supplier;

/** Stands in for the part of Play Integrity on the phone, in the Play Store. Tests make it fail with Google's own codes. */
public final class PlayStandIn {
    private static final int NEVER = Integer.MIN_VALUE, CANCELLED = Integer.MIN_VALUE + 1;

    private final String packageName;
    /** The Google server that makes the tokens. */
    public volatile GoogleStandIn google = new GoogleStandIn();
    /** The number of prepared providers, and the number of token requests. */
    public final AtomicInteger warmUps = new AtomicInteger(), requests = new AtomicInteger();
    private final Deque<Integer> warmUpFaults = new ArrayDeque<>(), requestFaults = new ArrayDeque<>();
    private final Deque<Runnable> late = new ArrayDeque<>();
    private volatile boolean answersLate;
    private volatile int lastingFault;
    private volatile int generation;

    PlayStandIn(String packageName) { this.packageName = packageName; }

    /** Makes the next token requests fail with these codes, in this order. Code 0 succeeds, {@link #neverAnswers} gets no answer. */
    public void failRequests(int... codes) { synchronized (requestFaults) { for (int code : codes) requestFaults.add(code); } }

    /** Makes the next warm-ups fail with these codes. */
    public void failWarmUps(int... codes) { synchronized (warmUpFaults) { for (int code : codes) warmUpFaults.add(code); } }

    /** Makes every call fail with this code. Code 0 ends the failures. */
    public void failAlways(int code) { lastingFault = code; }

    /** The code of a call that is never answered. */
    public static int neverAnswers() { return NEVER; }

    /** The code of a call whose task is cancelled. */
    public static int cancels() { return CANCELLED; }

    /** With true, no task is complete when it is returned. {@link #answerLate} completes the waiting tasks. */
    public void answersLate(boolean answersLate) { this.answersLate = answersLate; }

    /** Completes the waiting tasks, and returns their number. */
    public int answerLate() {
        Deque<Runnable> waiting;
        synchronized (late) {
            waiting = new ArrayDeque<>(late);
            late.clear();
        }
        waiting.forEach(Runnable::run);
        return waiting.size();
    }

    /** Invalidates the providers that were prepared before this call, as happens after some hours. */
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
            }, StandInFailures::classic);
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
                }, StandInFailures::standard);
            };
            return answer(fault, () -> provider, StandInFailures::standard);
        };
    }

    private int fault(Deque<Integer> faults) {
        synchronized (faults) { return faults.isEmpty() ? lastingFault : faults.poll(); }
    }

    private <Result> Task<Result> answer(int code, Supplier<Result> result, IntFunction<Exception> failure) {
        PendingTask<Result> task = new PendingTask<>();
        Runnable completion = () -> {
            if (code == 0) task.complete(result.get(), null, false);
            else task.complete(null, code == CANCELLED ? null : failure.apply(code), code == CANCELLED);
        };
        if (code == NEVER) return task;
        if (answersLate) synchronized (late) { late.add(completion); } else completion.run();
        return task;
    }
}
