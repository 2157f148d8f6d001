package ai.synheart.auth

import com.sun.net.httpserver.HttpServer
import java.net.InetAddress
import java.net.InetSocketAddress
import java.util.concurrent.CopyOnWriteArrayList
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.coroutineScope
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertNotEquals
import org.junit.Assert.assertTrue
import org.junit.Test

/** Signing, sending and tokens, against the real service and a backend that has the service verify its requests. */
class SendTest {
    /** A backend at another origin: it has the service verify each request. */
    private class Backend(private val world: World) {
        val origin = "https://api.example.com"
        private val credential = world.service.backendCredential(world.appId)
        val verdicts = CopyOnWriteArrayList<String>()
        val client = client(SignatureScheme.ONE)

        /** A client of an app that signs under this scheme. */
        fun client(scheme: SignatureScheme) = SynheartAuth(world.phone.configuration(origins = setOf(origin), scheme = scheme))

        init {
            val network = world.phone.network
            world.phone.network = { request, send -> if (request.url.startsWith(origin)) verify(request) else network(request, send) }
        }

        private suspend fun verify(request: HttpRequest): HttpResponse {
            val answer = world.service.verify(request, credential)
            verdicts.add("${answer.status} ${String(answer.body)}")
            return answer
        }
    }

    private fun backend(vararg edits: Pair<String, Any?>, body: suspend World.(Backend) -> Unit) =
        World.run(edits = arrayOf("signature.authorities" to listOf("https://api.example.com"), *edits)) {
            register()
            body(Backend(this))
        }

    @Test
    fun `a backend verifies requests under both schemes`() = backend { backend ->
        for (scheme in SignatureScheme.entries) {
            val request = HttpRequest("POST", "${backend.origin}/v1/pay%20now", listOf("X-Own" to "1"), "{\"a\":1}".toByteArray())
            val answer = backend.client(scheme).send(appId, request)
            assertEquals("${backend.verdicts}", 200, answer.status)
        }
        assertTrue(backend.verdicts[0].contains("\"signature_scheme\":1") && backend.verdicts[1].contains("\"signature_scheme\":2"))
        val headers = backend.client.sign(appId, "GET", "${backend.origin}/v1/x?a=b")
        assertTrue("Signature-Input" in headers)
    }

    @Test
    fun `the scheme floor is remembered`() = backend { backend ->
        assertEquals(6, client.signRequest(appId, "GET", "/v1/x").size)
        backend.client(SignatureScheme.TWO).send(appId, HttpRequest("GET", "${backend.origin}/v1/x"))
        for (scheme in listOf(null, SignatureScheme.ONE)) {
            expect<SynheartAuthException.SigningFailed>(Recovery.NONE) { client.signRequest(appId, "GET", "/v1/x", scheme = scheme) }
        }
        val answer = client.send(appId, HttpRequest("GET", statusUrl))
        assertEquals(200, answer.status)
        client.rotateKey(appId)
        client.deviceToken(appId)
    }

    @Test
    fun `a call cannot ask for another scheme than the configuration's`() = backend { backend ->
        for ((configured, other) in listOf(SignatureScheme.ONE to SignatureScheme.TWO, SignatureScheme.TWO to SignatureScheme.ONE)) {
            val client = backend.client(configured)
            val url = "${backend.origin}/v1/x"
            val calls = listOf<suspend (SignatureScheme?) -> Any?>(
                { client.send(appId, HttpRequest("GET", url), it) }, { client.sign(appId, "GET", url, scheme = it) },
                { client.signRequest(appId, "GET", "/v1/x", scheme = it) },
            )
            for (call in calls) {
                expect<SynheartAuthException.SigningFailed>(Recovery.NONE) { call(other) }
                if (configured == SignatureScheme.TWO && call === calls.last()) continue
                call(configured)
                call(null)
            }
            if (configured == SignatureScheme.ONE) assertEquals(6, client.signRequest(appId, "GET", "/v1/x").size)
        }
    }

    @Test
    fun `an app that demands scheme 2 refuses a client that is not configured for it`() = backend("signature.minimum_scheme" to 2) { backend ->
        assertEquals(400, backend.client.send(appId, HttpRequest("GET", "${backend.origin}/v1/x")).status)
        assertEquals(1, backend.verdicts.size)
        assertEquals(200, backend.client(SignatureScheme.TWO).send(appId, HttpRequest("GET", "${backend.origin}/v1/x")).status)
    }

    @Test
    fun `own calls are signed under the scheme that the service wants`() = World.run(edits = arrayOf("signature.minimum_scheme" to 2)) {
        register()
        client.rotateKey(appId)
        assertEquals(2, count(World.ROTATE))
        client.status(appId)
        assertEquals(1, count(World.STATUS))
        client.resetDeviceIdentity(appId, ResetReason.USER_REQUESTED)
        assertEquals(0, liveDevices().size)
    }

    @Test
    fun `a hostile backend cannot end the identity`() = backend { backend ->
        val network = phone.network
        for (code in listOf("DEVICE_REVOKED", "NOT_REGISTERED", "INVALID_SIGNATURE")) {
            val status = if (code == "DEVICE_REVOKED") 403 else 401
            phone.network = { request, send -> if (request.url.startsWith(backend.origin)) refusal(status, code) else network(request, send) }
            assertEquals(status, backend.client.send(appId, HttpRequest("GET", "${backend.origin}/v1/x")).status)
            assertEquals(IdentityState.REGISTERED, client.state(appId))
        }
        // The clock offset is right for the auth service, so a backend's `CLOCK_SKEW` must not change it. `send` returns the
        // backend's refusal.
        phone.network = { request, send ->
            if (request.url.startsWith(backend.origin)) refusal(401, "CLOCK_SKEW", serverTime = 1_000_000_000) else network(request, send)
        }
        assertEquals(401, backend.client.send(appId, HttpRequest("GET", "${backend.origin}/v1/x")).status)
        phone.network = network
        expectWorking()
        assertEquals(IdentityState.REGISTERED, client.state(appId))
    }

    @Test
    fun `a revocation that a backend reports is confirmed`() = backend { backend ->
        service.device(appId, client.getDeviceId(appId)!!, "revoke")
        expect<SynheartAuthException.DeviceRevoked>(Recovery.RESET) {
            backend.client.send(appId, HttpRequest("GET", "${backend.origin}/v1/x"))
        }
    }

    @Test
    fun `a lost key is replaced by a new registration while sending`() = backend { backend ->
        val first = client.getDeviceId(appId)
        phone.keys(appId).forEach(phone.device.keystore::lose)
        val suspected = expect<SynheartAuthException.KeystoreError>(Recovery.RETRY) {
            backend.client.send(appId, HttpRequest("GET", "${backend.origin}/v1/x"))
        }
        assertFalse(suspected.mayHaveHappened)
        passTwoSeconds()
        assertEquals(200, backend.client.send(appId, HttpRequest("GET", "${backend.origin}/v1/x")).status)
        assertNotEquals(first, client.getDeviceId(appId))
    }

    @Test
    fun `a demand for an App Attest assertion is ATTESTATION_UNAVAILABLE`() = World.run {
        register()
        answer(World.STATUS, refusal(403, "ASSERTION_REQUIRED"))
        expect<SynheartAuthException.AttestationUnavailable>(Recovery.NONE) { send() }
    }

    @Test
    fun `a rotation brings evidence where the service demands an assertion`() = World.run {
        register()
        answer(World.ROTATE, refusal(403, "ASSERTION_REQUIRED"))
        client.rotateKey(appId)
        assertEquals(2, count(World.ROTATE))
        expectWorking()
    }

    @Test
    fun `a request that the platform would change or refuse is refused before sending`() = World.run {
        register()
        for (url in listOf("${service.publicUrl}/a|b", "$statusUrl?a='b'", "${service.publicUrl}/a^b")) {
            expect<SynheartAuthException.SigningFailed>(Recovery.NONE) {
                client.send(appId, HttpRequest("GET", url), transport = UrlConnectionTransport())
            }
        }
        val error = expect<SynheartAuthException.SigningFailed>(Recovery.NONE) {
            client.send(appId, HttpRequest("GET", statusUrl, body = byteArrayOf(1)), transport = UrlConnectionTransport())
        }
        assertFalse(error.mayHaveHappened)
    }

    @Test
    fun `requests elsewhere, and those that change the identity, are not signed`() = World.run {
        register()
        requests.clear()
        for (url in listOf("https://elsewhere.example/", "http://example.com/", "$statusUrl#x", "${service.publicUrl}/a/../b", "relative")) {
            expect<SynheartAuthException.SigningFailed>(Recovery.NONE) { send(url) }
            expect<SynheartAuthException.SigningFailed>(Recovery.NONE) { client.sign(appId, "GET", url) }
        }
        val reserved = listOf(
            "POST" to "/auth/v1/device/rotate-key", "post" to "/auth/v1/device/rotate-key", "POST" to "/auth/v1//device/rotate%2Dkey/",
            "POST" to "/AUTH/v1/device/Rotate-Key", "DELETE" to "/auth/v1/device", "DELETE" to "/auth/v1/%64evice", "DELETE" to "//auth/v1/device",
        )
        for ((method, path) in reserved) {
            expect<SynheartAuthException.SigningFailed>(Recovery.NONE) { client.signRequest(appId, method, path) }
            for (scheme in SignatureScheme.entries) {
                expect<SynheartAuthException.SigningFailed>(Recovery.NONE) { send("${service.publicUrl}$path", method, scheme) }
            }
        }
        client.signRequest(appId, "GET", "/auth/v1/device")
        val headers = listOf(
            "Host" to "x", "X-Device-ID" to "x", "Content-Length" to "1", "a b" to "x", "X-Own" to "a\r\nX: b", "Signature-Input" to "x",
            "X-Own" to "é",
        )
        for (header in headers) {
            expect<SynheartAuthException.SigningFailed>(Recovery.NONE) { client.send(appId, HttpRequest("GET", statusUrl, listOf(header))) }
        }
        for (method in listOf("", "G T", "A".repeat(33), "GÉT")) {
            expect<SynheartAuthException.SigningFailed>(Recovery.NONE) { client.signRequest(appId, method, "/") }
        }
        assertTrue("$requests", requests.isEmpty())
    }

    @Test
    fun `a scheme that was refused as unsupported does not raise the floor`() = World.run {
        register()
        // The service refuses scheme 2 like this if the app's record has no authorities.
        answer(World.STATUS, refusal(400, "UNSUPPORTED_SIG_VERSION"))
        assertEquals(400, send(scheme = SignatureScheme.TWO).status)
        assertEquals(SignatureScheme.ONE, record().schemeFloor)
        send(scheme = SignatureScheme.TWO)
        assertEquals(SignatureScheme.TWO, record().schemeFloor)
    }

    @Test
    fun `an answer that does not say that the request was verified raises no floor`() = World.run {
        register()
        val answers = listOf(
            HttpResponse(502, emptyList(), ByteArray(0)), refusal(503, "SERVICE_UNAVAILABLE"), refusal(429, "RATE_LIMITED"),
            refusal(404, "UNKNOWN_APP"),
        )
        for (answer in answers) {
            answer(World.STATUS, answer)
            assertEquals(answer.status, send(scheme = SignatureScheme.TWO).status)
            assertEquals(SignatureScheme.ONE, record().schemeFloor)
        }
        // A 404 without an error code is the backend's own answer, and comes after the verification succeeded.
        answer(World.STATUS, HttpResponse(404, emptyList(), ByteArray(0)))
        send(scheme = SignatureScheme.TWO)
        assertEquals(SignatureScheme.TWO, record().schemeFloor)
    }

    @Test
    fun `the deadline bounds the whole call`() = World.run {
        register()
        // The deadline passes once the service has the request and does not answer.
        suspend fun expectDeadline() {
            val isSent = CompletableDeferred<Unit>()
            phone.sleeper.onDeadline = { isSent.await() }
            at(World.STATUS) {
                isSent.complete(Unit)
                awaitCancellation()
            }
            expect<SynheartAuthException.NetworkError>(Recovery.RETRY) {
                client.send(appId, HttpRequest("GET", statusUrl, deadline = 10.seconds))
            }
        }
        expectDeadline()
        // A recovery that the call began must not send the request again.
        answer(World.STATUS, refusal(409, "NONCE_REPLAY"))
        expectDeadline()
        phone.sleeper.onDeadline = { awaitCancellation() }
        expectWorking()
    }

    @Test
    fun `a token is cached for half of its life, by audience and key`() = World.run(edits = arrayOf("signature.token_audiences" to listOf("https://api.test"))) {
        register()
        val token = client.deviceToken(appId)
        assertEquals(token.token, client.deviceToken(appId).token)
        assertFalse(token.token in token.toString())
        assertNotEquals(token.token, client.deviceToken(appId, "https://api.test").token)
        assertEquals(2, count(World.TOKEN))
        phone.clock.elapsedOffset += token.remaining.inWholeMilliseconds / 2 + 1_000
        // Past half of its life the token is still used while the service is down.
        loseRequest(World.TOKEN)
        assertEquals(token.token, client.deviceToken(appId).token)
        assertNotEquals(token.token, client.deviceToken(appId).token)
        client.rotateKey(appId)
        val count = count(World.TOKEN)
        coroutineScope { List(5) { async { client.deviceToken(appId).token } }.map { it.await() }.toSet().let { assertEquals(1, it.size) } }
        assertEquals(count + 1, count(World.TOKEN))
        expect<SynheartAuthException.ServerError>(Recovery.NONE) { client.deviceToken(appId, "another") }
    }

    // The transport.

    private fun server(status: Int, headers: Map<String, String>, body: ByteArray, test: suspend (String) -> Unit) {
        val server = HttpServer.create(InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0)
        server.createContext("/") { exchange ->
            headers.forEach(exchange.responseHeaders::add)
            exchange.sendResponseHeaders(status, if (body.isEmpty()) -1 else body.size.toLong())
            try {
                exchange.responseBody.use { it.write(body) }
            } catch (_: java.io.IOException) {
            }
        }
        server.start()
        try {
            kotlinx.coroutines.runBlocking { test("http://127.0.0.1:${server.address.port}") }
        } finally {
            server.stop(0)
        }
    }

    @Test
    fun `the transport follows no redirect and gives every answer`() {
        val places = listOf("https://elsewhere.example/", "/elsewhere")
        for ((status, place) in listOf(200, 204, 301, 302, 307, 401, 404, 500).flatMap { status -> places.map { status to it } }) {
            server(status, mapOf("Location" to place, "X-A" to "1"), ByteArray(0)) { url ->
                for (method in listOf("GET", "POST", "DELETE")) {
                    val body = if (method == "POST") "x".toByteArray() else ByteArray(0)
                    val answer = UrlConnectionTransport().send(HttpRequest(method, "$url/a?b=c", body = body))
                    assertEquals(status, answer.status)
                    assertEquals("1", answer.header("x-a"))
                }
            }
        }
    }

    @Test
    fun `the transport bounds the answer`() = server(200, emptyMap(), ByteArray(100_000)) { url ->
        val transport = UrlConnectionTransport()
        assertEquals(100_000, transport.send(HttpRequest("GET", url, maximumAnswer = 100_000)).body.size)
        try {
            transport.send(HttpRequest("GET", url, maximumAnswer = 99_999))
            throw AssertionError("no error")
        } catch (error: TransportException) {
            assertTrue(error.isTooLarge)
        }
        assertEquals(100_000, transport.send(HttpRequest("GET", url, maximumAnswer = 100_000)).body.size)
    }

    @Test
    fun `the transport refuses a URL that Android would change, and ends at its deadline`() = server(200, emptyMap(), ByteArray(0)) { url ->
        for (suffix in listOf("/a|b", "/a\"b", "/{a}", "/a\\b", "/?a='b'", "/?<a>")) {
            try {
                UrlConnectionTransport().send(HttpRequest("GET", url + suffix))
                throw AssertionError(suffix)
            } catch (_: TransportException) {
            }
        }
        try {
            UrlConnectionTransport().send(HttpRequest("GET", url, body = "x".toByteArray()))
            throw AssertionError("no error")
        } catch (_: TransportException) {
        }
        java.net.ServerSocket(0, 1, InetAddress.getLoopbackAddress()).use { silent ->
            try {
                UrlConnectionTransport().send(HttpRequest("GET", "http://127.0.0.1:${silent.localPort}/", deadline = 200.milliseconds))
                throw AssertionError("no error")
            } catch (_: TransportException) {
            }
        }
    }

    // The log.

    @Test
    fun `the log holds no secret`() = World.run(ai.synheart.auth.android.AndroidProof.BOTH, "keys.reattest_on_rotation" to true) {
        val secrets = HashSet<String>()
        val network = phone.network
        val text = Regex("\"([^\"]{12,})\"")
        phone.network = { request, send ->
            val answer = network(request, send)
            request.headers.filter { it.first == "X-Synheart-Signature" || it.first.startsWith("Sig") || it.first == "X-Synheart-Nonce" || it.first == "X-Device-ID" }
                .mapTo(secrets) { it.second }
            for (body in listOf(request.body, answer.body)) text.findAll(String(body)).mapTo(secrets) { it.groupValues[1] }
            answer
        }
        answer(World.CHALLENGE, refusal(503, "SERVICE_UNAVAILABLE"))
        register()
        expectWorking()
        send(scheme = SignatureScheme.TWO)
        secrets.add(client.deviceToken(appId).token)
        client.rotateKey(appId)
        answer(World.ROTATE, refusal(409, "ROTATION_FAILED"))
        expect<SynheartAuthException.RotationFailed>(Recovery.RETRY) { client.rotateKey(appId) }
        phone.clock.wallOffset = 3_600_123
        expectWorking()
        phone.keys(appId).forEach(phone.device.keystore::lose)
        expectLost { client.sign(appId, "GET", statusUrl) }
        client.resetDeviceIdentity(appId, ResetReason.KEY_LOST)
        val log = phone.log.joinToString("\n")
        secrets.removeAll(setOf(appId))
        secrets.removeAll { it.matches(Regex("[A-Za-z_]+")) }
        assertTrue(secrets.size > 20)
        for (secret in secrets) assertFalse("$secret in\n$log", secret in log)
        assertFalse("3600" in log)
        for (event in listOf("REGISTRATION_STARTED", "ATTEMPT_FAILED", "REGISTRATION_FINISHED", "ROTATION_FINISHED", "ROTATION_FAILED", "STATE_CHANGED", "IDENTITY_RESET")) {
            assertTrue("$event in\n$log", event in log)
        }
        assertTrue(log, "unregistered -> challengeReceived" in log && "app=$appId" in log)
    }
}
