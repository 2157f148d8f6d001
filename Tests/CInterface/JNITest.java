import ai.synheart.auth.SynheartAuth;

/** The JNI glue on a desktop JVM: results, errors with their codes, use after close. */
public final class JNITest {
    public static void main(String[] arguments) throws Exception {
        System.loadLibrary("synheart_auth_jni");
        try (SynheartAuth auth = new SynheartAuth("http://127.0.0.1:1", arguments[0])) {
            expect(auth.isRegistered("com.example.app").equals("{\"registered\":false}"));
            expect(auth.getDeviceId("com.example.app").equals("{\"device_id\":null}"));
            expectFailure(14, () -> auth.signRequest("com.example.app", "POST", "/v1", new byte[] {1, 0, 2}));
            expectFailure(15, () -> auth.isRegistered("not an app id"));
            expectFailure(101, () -> auth.isRegistered(null));
            auth.close();
            expectFailure(101, () -> auth.isRegistered("com.example.app"));
        }
        expectFailure(15, () -> new SynheartAuth("http://example.com", arguments[0]));
        System.out.println("ok");
    }

    private interface Call { Object run() throws Exception; }

    private static void expectFailure(int status, Call call) throws Exception {
        try {
            call.run();
        } catch (SynheartAuth.Failure failure) {
            expect(failure.status == status);
            return;
        }
        throw new AssertionError("did not fail with " + status);
    }

    private static void expect(boolean condition) {
        if (!condition) throw new AssertionError();
    }
}
