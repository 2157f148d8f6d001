package ai.synheart.auth;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertNotEquals;
import static org.junit.Assert.assertNull;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import ai.synheart.auth.android.AndroidConfiguration;
import ai.synheart.auth.android.AndroidConfigurationBuilder;
import ai.synheart.auth.android.AndroidProof;
import ai.synheart.auth.android.IntegrityRequests;
import java.io.Closeable;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.Test;

/** The client as an app in Java calls it, against the real service. */
public class JavaCallerTest {
    @SuppressWarnings("unchecked")
    private static String newApp(TestPhone phone) { return phone.getService().newApp(phone.record()); }

    private static <Value> Value get(CompletableFuture<Value> future) throws Exception { return future.get(60, TimeUnit.SECONDS); }

    @Test
    public void javaLivesADevicesLife() throws Exception {
        try (TestPhone phone = new TestPhone()) {
            String appId = newApp(phone);
            SynheartAuthJava auth = new AndroidConfigurationBuilder(phone.getService().getPublicUrl())
                .proof(AndroidProof.PLAY_INTEGRITY).rotatesAutomatically(false).create(phone.getDevice().context());
            List<IdentityState> states = new CopyOnWriteArrayList<>();
            CountDownLatch registered = new CountDownLatch(1);
            Closeable listener = auth.addStateListener(change -> {
                states.add(change.getTo());
                if (change.getTo() == IdentityState.REGISTERED) registered.countDown();
            });

            assertFalse(get(auth.isRegistered(appId)));
            assertNull(get(auth.getDeviceId(appId)));
            Registration registration = get(auth.registerDevice(appId));
            assertEquals(Registration.Status.REGISTERED, registration.getStatus());
            assertTrue(registered.await(60, TimeUnit.SECONDS));
            listener.close();
            assertTrue(states.contains(IdentityState.REGISTERING));
            assertEquals(IdentityState.REGISTERED, get(auth.state(appId)));
            assertEquals(registration.getDeviceId(), get(auth.getDeviceId(appId)));

            byte[] body = "{}".getBytes(StandardCharsets.UTF_8);
            assertEquals(6, get(auth.signRequest(appId, "POST", "/v1/readings", body)).size());
            assertEquals(6, get(auth.signRequest(appId, "GET", "/v1/readings")).size());
            assertFalse(get(auth.sign(appId, "GET", phone.getService().getPublicUrl() + "/v1/readings")).isEmpty());
            HttpRequest request = SynheartAuthJava.request(
                "GET", phone.getService().getPublicUrl() + "/auth/v1/device/status", Map.of("Accept", "application/json"));
            HttpResponse answer = get(auth.send(appId, request));
            assertEquals(200, answer.getStatus());
            assertTrue(new String(answer.getBody(), StandardCharsets.UTF_8).contains(registration.getDeviceId()));
            HttpRequest small = SynheartAuthJava.request(
                "GET", phone.getService().getPublicUrl() + "/auth/v1/device/status", Map.of(), new byte[0], 30_000, 10);
            ExecutionException tooLarge = assertThrows(ExecutionException.class, () -> get(auth.send(appId, small)));
            assertTrue(tooLarge.getCause() instanceof SynheartAuthException.AnswerTooLarge);

            String thumbprint = get(auth.status(appId)).getKeyThumbprint();
            get(auth.rotateKey(appId));
            assertNotEquals(thumbprint, get(auth.status(appId)).getKeyThumbprint());
            get(auth.maintain(appId));
            assertNull(get(auth.resetDeviceIdentity(appId, ResetReason.USER_REQUESTED)));
            assertFalse(get(auth.isRegistered(appId)));
            ((SynheartAuth) auth.getAuth()).close();
        }
    }

    private static SynheartAuth client(BodyServer server) {
        MemoryPhone phone = new MemoryPhone(server.getUrl(), MemoryPhone.APP);
        return StreamTest.Companion.client(server.getUrl(), SignatureScheme.TWO, phone, phone);
    }

    @Test
    public void javaStreamsABody() throws Exception {
        try (BodyServer server = new BodyServer()) {
            SynheartAuthJava auth = new SynheartAuthJava(client(server));
            server.setAnswerSize(5);
            HttpRequest request = SynheartAuthJava.request(
                "PUT", server.getUrl() + "/v1/x", Map.of(), output -> output.write(new byte[1_000]), 30_000, 5, true);
            HttpResponse answer = get(auth.send(MemoryPhone.APP, request));
            assertEquals(5, answer.getStream().readAllBytes().length);
            assertEquals(1_000, server.getExecuted().get(0).getSize());
            assertTrue(get(auth.sign(MemoryPhone.APP, "PUT", server.getUrl() + "/", output -> output.write(1))).containsKey("Content-Digest"));
        }
    }

    @Test
    public void aFutureFailsWithTheClientsError() throws Exception {
        SynheartAuthJava auth = new SynheartAuthJava(new SynheartAuth());
        ExecutionException failure = assertThrows(ExecutionException.class, () -> get(auth.registerDevice("com.example.app")));
        SynheartAuthException error = (SynheartAuthException) failure.getCause();
        assertEquals("NOT_CONFIGURED", error.getCode());
        assertEquals(Recovery.CONFIGURE, error.getRecovery());
        assertNull(SynheartAuthJava.retryAfterMillis(error));
    }

    @Test
    public void cancellingAFutureEndsTheWait() throws Exception {
        CountDownLatch asked = new CountDownLatch(1), cancelled = new CountDownLatch(1);
        try (TestPhone phone = new TestPhone()) {
            String appId = newApp(phone);
            SynheartAuthJava auth = new AndroidConfigurationBuilder(phone.getService().getPublicUrl())
                .transport((request, continuation) -> {
                    asked.countDown();
                    return kotlinx.coroutines.DelayKt.awaitCancellation(continuation);
                }).create(phone.getDevice().context());
            CompletableFuture<Registration> future = auth.registerDevice(appId);
            future.whenComplete((value, error) -> cancelled.countDown());
            assertTrue(asked.await(60, TimeUnit.SECONDS));
            assertTrue(future.cancel(true));
            assertTrue(cancelled.await(60, TimeUnit.SECONDS));
            assertThrows(CancellationException.class, () -> get(future));
            ((SynheartAuth) auth.getAuth()).close();
        }
    }

    @Test
    public void theBuilderSetsWhatItIsToldAndNothingElse() {
        AndroidConfiguration plain = new AndroidConfigurationBuilder("https://auth.example.com").build();
        AndroidConfiguration inKotlin = new AndroidConfigurationBuilder("https://auth.example.com").cloudProjectNumber(7)
            .origins(Set.of("https://api.example.com")).aliases(Set.of("https://old.example.com")).usesStrongBox(!plain.getUsesStrongBox())
            .deviceLocalId("8f14e45f-ceea-4672-a3c1-0d5e1f8b1c11").rotatesAutomatically(!plain.getRotatesAutomatically())
            .proof(AndroidProof.BOTH).build();
        assertEquals(IntegrityRequests.CLASSIC, plain.getRequests());
        assertEquals(IntegrityRequests.STANDARD, inKotlin.getRequests());
        assertEquals(AndroidProof.EITHER, plain.getProof());
        assertEquals(AndroidProof.BOTH, inKotlin.getProof());
        assertEquals(Set.of("https://api.example.com"), inKotlin.getOrigins());
        assertEquals(Set.of("https://old.example.com"), inKotlin.getAliases());
        assertNotEquals(plain.getUsesStrongBox(), inKotlin.getUsesStrongBox());
        assertNotEquals(plain.getRotatesAutomatically(), inKotlin.getRotatesAutomatically());
        assertEquals("8f14e45f-ceea-4672-a3c1-0d5e1f8b1c11", inKotlin.getDeviceLocalId());
    }
}
