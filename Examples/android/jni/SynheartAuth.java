package ai.synheart.auth;

/** The facade over the C interface; each method blocks, so call it off the main thread. Results and errors are JSON texts. */
public final class SynheartAuth implements AutoCloseable {
    /** An error with its stable code. */
    public static final class Failure extends Exception {
        public final int status;
        public final String json;

        public Failure(int status, String json) {
            super(json);
            this.status = status;
            this.json = json;
        }
    }

    private long handle;

    public SynheartAuth(String baseUrl, String directory) throws Failure { handle = create(baseUrl, directory); }

    public synchronized String registerDevice(String appId) throws Failure { return call(handle, 0, appId); }

    public synchronized String isRegistered(String appId) throws Failure { return call(handle, 1, appId); }

    public synchronized String getDeviceId(String appId) throws Failure { return call(handle, 2, appId); }

    public synchronized String signRequest(String appId, String method, String path, byte[] body) throws Failure {
        return sign(handle, appId, method, path, body);
    }

    @Override
    public synchronized void close() {
        free(handle);
        handle = 0;
    }

    private static native long create(String baseUrl, String directory) throws Failure;
    private static native String call(long handle, int operation, String appId) throws Failure;
    private static native String sign(long handle, String appId, String method, String path, byte[] body) throws Failure;
    private static native void free(long handle);
}
