package ai.synheart.auth.flutter

import ai.synheart.auth.IdentityState
import ai.synheart.auth.SignatureScheme
import ai.synheart.standins.StandInDevice
import java.nio.file.Files
import java.util.concurrent.TimeUnit
import org.junit.Assert.assertEquals
import org.junit.Assert.assertTrue
import org.junit.Test

/** The whole life of a device through the channels: the plugin that Flutter gets, on stand-ins for Android, and the real service. */
class PluginLifeTest {
    private val service: String = System.getProperty("synheart.service")
    private val appId: String = System.getProperty("synheart.app")
    private val folder = Files.createTempDirectory("synheart-auth-flutter")
    private val engine = TestEngine(androidClient(StandInDevice.start(folder).context()))
    private val app = mapOf("appId" to appId)
    private val call = app + ("call" to null)

    @Test
    fun `a device registers, signs, sends, rotates and resets over the channels`() = engine.use {
        engine.listen()
        configure(service)
        assertEquals("unregistered", success("getState", app))
        assertEquals(false, success("isRegistered", app))

        val registration = fields(success("registerDevice", call + ("joins" to true)))
        assertEquals("registered", registration["status"])
        val deviceId = registration["deviceId"]
        assertEquals(deviceId, success("getDeviceId", app))
        assertEquals(true, success("isRegistered", app))
        assertEquals(listOf("challengeReceived", "keyReady", "registering", "registered"), states(4))
        assertEquals("alreadyRegistered", fields(success("registerDevice", call + ("joins" to true)))["status"])

        val signing = mapOf("method" to "GET", "body" to ByteArray(0), "scheme" to "one")
        val headers = success("signRequest", app + signing + ("path" to "/auth/v1/device/status")) as List<*>
        assertEquals(6, headers.size)
        assertTrue(headers.any { fields(it)["name"] == "X-Synheart-Signature" })
        assertEquals(200, fields(success("send", send("$service/auth/v1/device/status") + ("scheme" to "one")))["status"])
        // The configuration sets the scheme. A call that names the other scheme fails.
        val moved = engine.call("send", send("$service/auth/v1/device/status") + ("scheme" to "two")) as Answer.Failure
        assertEquals("SIGNING_FAILED", moved.code)
        val other = "https://other.example.com/"
        val foreign = engine.call("sign", call + signing + mapOf("url" to other, "asserting" to false)) as Answer.Failure
        assertEquals("SIGNING_FAILED", foreign.code)

        assertEquals(3, (fields(success("deviceToken", call + ("audience" to null)))["token"] as String).split(".").size)
        assertEquals(deviceId, fields(success("rotateKey", call + ("reason" to "compromise")))["deviceId"])
        assertEquals(listOf("registering", "registered"), states(2))
        assertEquals(200, fields(success("send", send("$service/auth/v1/device/status")))["status"])
        success("maintain", call)
        success("correctClockSkew", mapOf("serverTimestamp" to System.currentTimeMillis() / 1000.0, "appId" to appId))
        val skew = engine.call("correctClockSkew", mapOf("serverTimestamp" to 1.0, "appId" to appId)) as Answer.Failure
        assertEquals("CLOCK_SKEW" to "correctClock", skew.code to fields(skew.details)["recovery"])

        success("resetDeviceIdentity", call + ("reason" to "user_requested"))
        assertEquals(listOf("unregistered"), states(1))
        val unregistered = engine.call("signRequest", app + signing + ("path" to "/")) as Answer.Failure
        assertEquals("NOT_REGISTERED" to "register", unregistered.code to fields(unregistered.details)["recovery"])
    }

    @Test
    fun `a wrong base URL is NOT_CONFIGURED`() = engine.use {
        for (url in listOf("", "http://example.com", "ftp://example.com", "https://example.com/path")) {
            val failure = engine.call("configure", settings(url)) as Answer.Failure
            assertEquals(url, "NOT_CONFIGURED", failure.code)
        }
    }

    @Test
    fun `every setting reaches the Android configuration`() {
        val all = configuration(
            Settings("https://a.example.com", setOf("https://b.example.com"), setOf("https://c.example.com"), SignatureScheme.TWO, false, 5, "both", true),
        )
        assertEquals("https://a.example.com", all.baseUrl)
        assertEquals(setOf("https://b.example.com"), all.origins)
        assertEquals(setOf("https://c.example.com"), all.aliases)
        assertEquals(false, all.rotatesAutomatically)
        assertEquals(5L, all.cloudProjectNumber)
        assertEquals("BOTH", all.proof.name)
        assertEquals(SignatureScheme.TWO, all.scheme)
        assertEquals("DevelopmentAttestation", all.attestation?.javaClass?.simpleName)
        for ((wire, proof) in mapOf("playIntegrity" to "PLAY_INTEGRITY", "keyAttestation" to "KEY_ATTESTATION", "either" to "EITHER")) {
            val some = configuration(Settings("https://a.example.com", emptySet(), emptySet(), SignatureScheme.ONE, true, null, wire, false))
            assertEquals(proof, some.proof.name)
            assertEquals(null, some.attestation)
        }
    }

    @Test
    fun `the states on the channel are the Kotlin client's`() {
        assertEquals(IdentityState.entries.map { it.wire }, (Contract.calls.getValue("getState").result as Shape.Choice).values)
    }

    private fun settings(url: String) = mapOf(
        "baseUrl" to url, "origins" to emptyList<String>(), "aliases" to emptyList<String>(), "scheme" to "one",
        "rotatesAutomatically" to false,
        "cloudProjectNumber" to null, "androidProof" to "either", "developmentMode" to true,
    )

    private fun configure(url: String) = success("configure", settings(url))

    private fun send(url: String) = call + mapOf(
        "method" to "GET", "url" to url, "headers" to listOf(mapOf("name" to "Accept", "value" to "application/json")),
        "body" to ByteArray(0), "scheme" to null, "asserting" to false, "timeoutMs" to 30000, "maximumAnswer" to 65536,
    )

    private fun success(method: String, arguments: Map<String, Any?>): Any? {
        val answer = engine.call(method, arguments)
        assertTrue("$method: $answer", answer is Answer.Success)
        return (answer as Answer.Success).value
    }

    private fun states(count: Int) = List(count) { fields(engine.events.poll(20, TimeUnit.SECONDS))["to"] }
}
