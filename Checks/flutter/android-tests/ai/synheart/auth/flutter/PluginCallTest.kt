package ai.synheart.auth.flutter

import ai.synheart.auth.HttpResponse
import ai.synheart.auth.IdentityState
import ai.synheart.auth.StateChange
import ai.synheart.auth.SynheartAuthException
import java.util.concurrent.TimeUnit
import kotlinx.coroutines.CompletableDeferred
import org.junit.After
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertTrue
import org.junit.Test

/** Tests errors, cancellation and events of the plugin's Android half. */
class PluginCallTest {
    private val client = FakeClient()
    private val engine = TestEngine(client)
    private val registering = mapOf("call" to null, "appId" to "app", "joins" to true)

    @After
    fun end() = engine.close()

    @Test
    fun `each code of the contract reaches Dart with its details`() {
        for (row in ContractFile.codes) {
            val code = row["code"] as String
            client.failure = SynheartAuthException.fromCode(code, "why")
            assertEquals(failure(code, "why", row["recovery"] as String), engine.call("registerDevice", registering))
        }
    }

    @Test
    fun `the classes of the contract's codes are the Kotlin client's`() {
        for (row in ContractFile.codes) {
            assertEquals(row["class"], SynheartAuthException.fromCode(row["code"] as String).javaClass.simpleName)
        }
        for ((code, recovery) in fields(ContractFile.errors["service_recoveries"]) - "NOT_REGISTERED") {
            val error = SynheartAuthException.fromCode(code)
            assertTrue(code, error is SynheartAuthException.ServerError)
            assertEquals(code, recovery, error.recovery.wire)
        }
    }

    @Test
    fun `a code of the service is marked as the service's`() {
        client.failure = SynheartAuthException.fromCode("KEY_EXPIRED", "too old")
        assertEquals(failure("KEY_EXPIRED", "too old", "rotate", fromService = true), engine.call("registerDevice", registering))
    }

    @Test
    fun `cancelling a call ends it with CANCELLED, which is no network error`() {
        client.gate = CompletableDeferred()
        val call = engine.start("registerDevice", registering + ("call" to 7L))
        client.calls.poll(20, TimeUnit.SECONDS)
        assertFalse(call.isDone)
        assertEquals(Answer.Success(null), engine.call("cancel", mapOf("call" to 7L)))
        assertEquals(failure(Contract.CANCELLED, "the caller cancelled", "none"), call.get(20, TimeUnit.SECONDS))
        assertEquals(fields(ContractFile.errors["cancelled"])["code"], Contract.CANCELLED)
    }

    @Test
    fun `an error of a send says whether the request may have happened`() {
        // An internal function of the client sets `mayHaveHappened`. The test calls that function by reflection.
        val mark = Class.forName("ai.synheart.auth.FailuresKt")
            .getMethod("afterRequest", SynheartAuthException::class.java, Boolean::class.javaPrimitiveType)
        for (expected in listOf(true, false)) {
            client.failure = mark.invoke(null, SynheartAuthException.fromCode("NETWORK_ERROR", "why"), expected) as SynheartAuthException
            val sent = engine.call("send", request) as Answer.Failure
            assertEquals(expected, fields(sent.details)["mayHaveHappened"])
        }
    }

    @Test
    fun `a second configure with the same values changes nothing, in another engine too`() {
        val configured = Configured()
        TestEngine(client, configured).use { first ->
            TestEngine(client, configured).use { second ->
                for (engine in listOf(first, second, first)) {
                    assertEquals(Answer.Success(null), engine.call("configure", settings("https://auth.example.com")))
                }
                assertEquals("only the first call reached the client", 1, client.calls.size)
                val other = second.call("configure", settings("https://other.example.com")) as Answer.Failure
                assertEquals("NOT_CONFIGURED" to "none", other.code to fields(other.details)["recovery"])
                assertTrue(other.message, other.message!!.contains("baseUrl"))
                assertEquals(Answer.Success(null), first.call("configure", settings("https://auth.example.com")))
            }
        }
        assertEquals(1, client.calls.size)
    }

    @Test
    fun `a configuration that was refused is not remembered`() {
        client.failure = SynheartAuthException.fromCode("NOT_CONFIGURED", "why")
        assertEquals("NOT_CONFIGURED", (engine.call("configure", settings("https://a")) as Answer.Failure).code)
        client.failure = null
        assertEquals(Answer.Success(null), engine.call("configure", settings("https://b")))
    }

    @Test
    fun `calls work after a hot restart, and detaching one engine leaves the calls of another running`() {
        client.gate = CompletableDeferred()
        TestEngine(client).use { other ->
            val before = other.start("registerDevice", registering + ("call" to 1L))
            client.calls.poll(20, TimeUnit.SECONDS)
            // Dart starts again: it listens, configures, and numbers its calls anew.
            other.listen()
            assertEquals(Answer.Success(null), other.call("configure", settings("https://a")))
            client.calls.poll(20, TimeUnit.SECONDS)
            val after = other.start("registerDevice", registering + ("call" to 2L))
            client.calls.poll(20, TimeUnit.SECONDS)
            engine.detach()
            client.gate?.complete(Unit)
            for (call in listOf(before, after)) assertTrue(call.get(20, TimeUnit.SECONDS) is Answer.Success)
        }
    }

    @Test
    fun `a call that is cancelled before it begins is answered too`() {
        repeat(200) { round ->
            val call = engine.start("registerDevice", registering + ("call" to round + 1L))
            engine.start("cancel", mapOf("call" to round + 1L))
            call.get(20, TimeUnit.SECONDS)
        }
    }

    @Test
    fun `cancelling ends only the call with that id`() {
        client.gate = CompletableDeferred()
        val first = engine.start("registerDevice", registering + ("call" to 1L))
        val second = engine.start("registerDevice", registering + ("call" to 2L))
        repeat(2) { client.calls.poll(20, TimeUnit.SECONDS) }
        engine.call("cancel", mapOf("call" to 1L))
        assertTrue(first.get(20, TimeUnit.SECONDS) is Answer.Failure)
        assertFalse(second.isDone)
        client.gate?.complete(Unit)
        assertTrue(second.get(20, TimeUnit.SECONDS) is Answer.Success)
        // The first call has ended, so a new call may use its id.
        assertTrue(engine.call("registerDevice", registering + ("call" to 1L)) is Answer.Success)
    }

    @Test
    fun `a second call under the id of a running one is refused`() {
        client.gate = CompletableDeferred()
        val first = engine.start("registerDevice", registering + ("call" to 3L))
        client.calls.poll(20, TimeUnit.SECONDS)
        val second = engine.call("maintain", mapOf("call" to 3L, "appId" to "app")) as Answer.Failure
        assertEquals(Contract.MALFORMED, second.code)
        client.gate?.complete(Unit)
        assertTrue(first.get(20, TimeUnit.SECONDS) is Answer.Success)
        assertEquals("only the first call reached the client", 0, client.calls.size)
    }

    @Test
    fun `an answer that does not fit the channel is ANSWER_TOO_LARGE, and its request may have happened`() {
        for (headers in listOf(List(257) { "X" to "y" }, listOf("X".repeat(257) to "y"), listOf("X" to "y".repeat(16_385)))) {
            client.answer = HttpResponse(200, headers, ByteArray(0))
            val sent = engine.call("send", request) as Answer.Failure
            assertEquals("ANSWER_TOO_LARGE", sent.code)
            assertEquals(true, fields(sent.details)["mayHaveHappened"])
        }
    }

    @Test
    fun `changes of state reach Dart while it listens`() {
        assertTrue(client.stateChanges.tryEmit(StateChange("app", IdentityState.UNREGISTERED, IdentityState.CHALLENGE_RECEIVED)))
        engine.listen()
        client.stateChanges.tryEmit(StateChange("app", IdentityState.REGISTERED, IdentityState.KEY_INVALID))
        val event = engine.events.poll(20, TimeUnit.SECONDS)
        assertEquals(mapOf("appId" to "app", "from" to "registered", "to" to "keyInvalid"), event)
        Contract.stateChange.check(event, "event")

        assertEquals(Answer.Success(null), engine.call("cancel", null, Contract.STATES))
        client.stateChanges.tryEmit(StateChange("app", IdentityState.KEY_INVALID, IdentityState.UNREGISTERED))
        engine.listen()
        client.stateChanges.tryEmit(StateChange("app", IdentityState.KEY_READY, IdentityState.REGISTERING))
        assertEquals("registering", fields(engine.events.poll(20, TimeUnit.SECONDS))["to"])
    }

    @Test
    fun `after a hot restart, Dart listens again without cancelling and gets each change once`() {
        engine.listen()
        engine.listen()
        client.stateChanges.tryEmit(StateChange("app", IdentityState.REGISTERED, IdentityState.REGISTERING))
        client.stateChanges.tryEmit(StateChange("app", IdentityState.REGISTERING, IdentityState.REGISTERED))
        assertEquals("registering", fields(engine.events.poll(20, TimeUnit.SECONDS))["to"])
        assertEquals("registered", fields(engine.events.poll(20, TimeUnit.SECONDS))["to"])
    }

    @Test
    fun `a call gets no reply after its engine was detached`() {
        client.gate = CompletableDeferred()
        val call = engine.start("registerDevice", registering)
        client.calls.poll(20, TimeUnit.SECONDS)
        engine.detach()
        client.gate?.complete(Unit)
        engine.settle()
        assertFalse(call.isDone)
        assertEquals(Answer.NotImplemented, engine.call("getState", mapOf("appId" to "app")))
    }

    private val request = mapOf(
        "call" to null, "appId" to "app", "method" to "GET", "url" to "https://a/", "headers" to emptyList<Any>(),
        "body" to ByteArray(0), "scheme" to null, "asserting" to false, "timeoutMs" to 1000, "maximumAnswer" to 0,
    )

    private fun settings(baseUrl: String) = mapOf(
        "baseUrl" to baseUrl, "origins" to emptyList<String>(), "aliases" to emptyList<String>(), "scheme" to "one",
        "rotatesAutomatically" to true,
        "cloudProjectNumber" to null, "androidProof" to "either", "developmentMode" to false,
    )

    private fun failure(code: String, message: String, recovery: String, fromService: Boolean = false) = Answer.Failure(
        code, message,
        mapOf(
            "recovery" to recovery, "retryAfterMs" to null, "fromService" to fromService, "mayHaveHappened" to false, "from" to null,
            "to" to null,
        ),
    )
}
