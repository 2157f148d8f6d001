package ai.synheart.auth;

import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/** The facade over the C interface. Each method blocks, so call it off the main thread. Results and errors are JSON texts. */
public final class SynheartAuth implements AutoCloseable {
    /** The device's keys and proofs. Called from several threads. It must not call the facade. */
    public interface Host {
        /** Makes a P-256 key and returns its public key as SPKI DER. The challenge is empty for the key of a rotation. */
        byte[] createKey(String alias, byte[] challenge) throws HostFailure;

        /** The public key; null only if there certainly is no such key. */
        byte[] loadKey(String alias) throws HostFailure;

        /** ECDSA over SHA-256 of the message, ASN.1 DER; null if there is no such key. */
        byte[] sign(String alias, byte[] message) throws HostFailure;

        void deleteKey(String alias) throws HostFailure;

        /** {"proof":"...","key_attestation":["<base64 DER>", ...]} in UTF-8; the nonce has 32 bytes. */
        byte[] attest(String alias, byte[] challenge, byte[] nonce) throws HostFailure;
    }

    /** The host failed, with a synheart_auth_host_status. Any other exception counts as HOST_FAILED. */
    public static final class HostFailure extends Exception {
        public static final int HOST_INVALIDATED = 2;
        public static final int HOST_UNAVAILABLE = 3;
        public static final int HOST_UNSUPPORTED = 4;
        public static final int HOST_REFUSED = 5;
        public static final int HOST_FAILED = 6;
        public final int status;

        public HostFailure(int status, Throwable cause) {
            super(cause);
            this.status = status;
        }
    }

    /** An error with its stable code: the status, and the JSON with the details. */
    public static final class Failure extends Exception {
        public final int status;
        public final String json;

        public Failure(int status, String json) {
            super(json);
            this.status = status;
            this.json = json;
        }
    }

    /** A response, whatever its status: {"status":200,"headers":[{"name":"...","value":"..."}, ...]}, and the body. */
    public static final class Answer {
        public final String json;
        public final byte[] body;

        Answer(String json, byte[] body) {
            this.json = json;
            this.body = body;
        }
    }

    private static final int REGISTER = 0, IS_REGISTERED = 1, DEVICE_ID = 2, STATE = 3, ROTATE = 4, RESET = 5, TOKEN = 6,
        MAINTAIN = 7, ALLOW_ORIGIN = 8;

    // Operations may run concurrently. Closing waits for them.
    private final ReadWriteLock lock = new ReentrantReadWriteLock();
    private long handle;

    /** Uses the host's keys, and keeps records as files in `directory`. */
    public SynheartAuth(String baseUrl, String directory, Host host) throws Failure { handle = create(baseUrl, directory, host); }

    public String registerDevice(String appId) throws Failure { return run(REGISTER, appId, null); }

    public String isRegistered(String appId) throws Failure { return run(IS_REGISTERED, appId, null); }

    public String getDeviceId(String appId) throws Failure { return run(DEVICE_ID, appId, null); }

    public String getState(String appId) throws Failure { return run(STATE, appId, null); }

    /** Reason: scheduled or compromise. */
    public String rotateKey(String appId, String reason) throws Failure { return run(ROTATE, appId, reason); }

    /** Reason: server_instructed, user_requested or key_lost. */
    public String resetDeviceIdentity(String appId, String reason) throws Failure { return run(RESET, appId, reason); }

    /** Audience: one of the app's, or null for the app itself. */
    public String deviceToken(String appId, String audience) throws Failure { return run(TOKEN, appId, audience); }

    /** Finishes an interrupted rotation, and rotates a key that is due. */
    public String maintain(String appId) throws Failure { return run(MAINTAIN, appId, null); }

    /** Allows signed requests to this origin, such as https://api.example.com. Call it before anything else. */
    public String allowOrigin(String origin) throws Failure { return run(ALLOW_ORIGIN, null, origin); }

    /** Signs under scheme 1 or 2 (RFC 9421), sends, and recovers once from errors that a new signature mends. */
    public Answer send(String appId, int scheme, String method, String url, String headersJson, byte[] body) throws Failure {
        Object[] answer = request(true, appId, scheme, method, url, headersJson, body);
        return new Answer((String) answer[0], (byte[]) answer[1]);
    }

    /** The headers of a request that the app sends itself. */
    public String sign(String appId, int scheme, String method, String url, byte[] body) throws Failure {
        return (String) request(false, appId, scheme, method, url, null, body)[0];
    }

    public String signRequest(String appId, String method, String path, byte[] body) throws Failure {
        lock.readLock().lock();
        try { return sign(handle, appId, method, path, body); } finally { lock.readLock().unlock(); }
    }

    /** The longest time of each later call, except send; 0: 120 seconds. */
    public String setDeadline(long milliseconds) throws Failure {
        lock.readLock().lock();
        try { return limit(handle, milliseconds); } finally { lock.readLock().unlock(); }
    }

    public String correctClockSkew(String appId, double serverTimestamp) throws Failure {
        lock.readLock().lock();
        try { return correct(handle, appId, serverTimestamp); } finally { lock.readLock().unlock(); }
    }

    @Override
    public void close() {
        lock.writeLock().lock();
        try {
            free(handle);
            handle = 0;
        } finally { lock.writeLock().unlock(); }
    }

    private String run(int operation, String appId, String detail) throws Failure {
        lock.readLock().lock();
        try { return call(handle, operation, appId, detail); } finally { lock.readLock().unlock(); }
    }

    private Object[] request(
            boolean sends, String appId, int scheme, String method, String url, String headersJson, byte[] body) throws Failure {
        lock.readLock().lock();
        try {
            return request(handle, sends, appId, scheme, method, url, headersJson, body);
        } finally { lock.readLock().unlock(); }
    }

    private static native long create(String baseUrl, String directory, Host host) throws Failure;
    private static native String limit(long handle, long milliseconds) throws Failure;
    private static native String call(long handle, int operation, String appId, String detail) throws Failure;
    private static native String sign(long handle, String appId, String method, String path, byte[] body) throws Failure;
    private static native Object[] request(
        long handle, boolean sends, String appId, int scheme, String method, String url, String headersJson, byte[] body)
        throws Failure;
    private static native String correct(long handle, String appId, double serverTimestamp) throws Failure;
    private static native void free(long handle);
}
