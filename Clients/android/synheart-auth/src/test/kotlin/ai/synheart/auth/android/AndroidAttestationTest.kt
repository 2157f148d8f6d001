package ai.synheart.auth.android

import ai.synheart.auth.AttestationException
import ai.synheart.auth.AttestationException.Code
import ai.synheart.auth.AttestationSubject
import ai.synheart.auth.SynheartAuth
import ai.synheart.auth.android.PhoneRule.Companion.ALIAS
import ai.synheart.auth.android.PhoneRule.Companion.CHALLENGE
import ai.synheart.standins.KeystoreDaemon
import ai.synheart.standins.KeystoreDaemon.Call
import ai.synheart.standins.PlayStandIn
import ai.synheart.standins.StandInDevice
import android.os.SystemClock
import com.google.android.play.core.integrity.model.IntegrityErrorCode
import com.google.android.play.core.integrity.model.StandardIntegrityErrorCode
import java.io.File
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.TimeoutCancellationException
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitAll
import kotlinx.coroutines.delay
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertNotNull
import org.junit.Assert.assertNull
import org.junit.Assert.assertThrows
import org.junit.Assert.assertTrue
import org.junit.Rule
import org.junit.Test

class AndroidAttestationTest {
    @get:Rule
    val phone = PhoneRule()

    private val play get() = phone.device.play
    private val nonce = "n".repeat(43)

    private fun configuration(proof: AndroidProof, requests: IntegrityRequests = IntegrityRequests.STANDARD) =
        AndroidConfiguration("https://auth.example.com", cloudProjectNumber = 7, proof = proof, requests = requests)
            .with(phone.device.context(), pause = phone::pause)

    private fun subject(key: ByteArray, challenge: ByteArray = CHALLENGE, alias: String = ALIAS) =
        AttestationSubject("com.example.app", alias, key, challenge, nonce)

    private fun attest(configuration: ai.synheart.auth.Configuration, challenge: ByteArray = CHALLENGE) = runBlocking {
        val key = configuration.keyStore.create(ALIAS, CHALLENGE)
        configuration.attestation.attest(subject(key, challenge))
    }

    private fun expect(code: Code, body: suspend () -> Any?) {
        assertEquals(code, assertThrows(AttestationException::class.java) { runBlocking { body() } }.code)
    }

    // Which proofs

    @Test
    fun `each setting sends its proofs`() {
        for ((proof, sends) in mapOf(
            AndroidProof.PLAY_INTEGRITY to (true to false), AndroidProof.KEY_ATTESTATION to (false to true),
            AndroidProof.BOTH to (true to true), AndroidProof.EITHER to (true to true),
        )) {
            val evidence = attest(configuration(proof))
            assertEquals(sends, (evidence.proof != null) to (evidence.keyAttestation != null))
        }
    }

    @Test
    fun `a device that cannot attest keys sends a token alone, where that is enough`() {
        for (attestation in listOf(
            KeystoreDaemon.Attestation.SOFTWARE, KeystoreDaemon.Attestation.NONE, KeystoreDaemon.Attestation.REFUSED,
        )) {
            phone.keystore.attestation = attestation
            val evidence = attest(configuration(AndroidProof.EITHER))
            assertNotNull(evidence.proof)
            assertNull(evidence.keyAttestation)
        }
    }

    @Test
    fun `a device that cannot attest keys is told so, where the app demands it`() {
        for (attestation in listOf(KeystoreDaemon.Attestation.SOFTWARE, KeystoreDaemon.Attestation.NONE)) {
            phone.keystore.attestation = attestation
            for (proof in listOf(AndroidProof.BOTH, AndroidProof.KEY_ATTESTATION)) expect(Code.UNSUPPORTED) { attest(configuration(proof)) }
        }
    }

    @Test
    fun `a chain for another challenge is not sent`() {
        val evidence = attest(configuration(AndroidProof.EITHER), challenge = ByteArray(32))
        assertNotNull(evidence.proof)
        assertNull(evidence.keyAttestation)
    }

    @Test
    fun `certificates that the Keystore withholds are asked for again`() {
        val configuration = configuration(AndroidProof.EITHER)
        val key = configuration.keyStore.create(ALIAS, CHALLENGE)
        phone.keystore.failNext(Call.GET, KeystoreDaemon.SYSTEM_ERROR)
        expect(Code.UNAVAILABLE) { configuration.attestation.attest(subject(key)) }
        assertNotNull(runBlocking { configuration.attestation.attest(subject(key)) }.keyAttestation)
    }

    @Test
    fun `a device without Google Play sends its chain alone, where that is enough`() {
        for (requests in IntegrityRequests.entries) {
            for (code in listOf(
                IntegrityErrorCode.CANNOT_BIND_TO_SERVICE, IntegrityErrorCode.PLAY_STORE_NOT_FOUND, IntegrityErrorCode.PLAY_SERVICES_NOT_FOUND,
                IntegrityErrorCode.PLAY_STORE_VERSION_OUTDATED, IntegrityErrorCode.PLAY_SERVICES_VERSION_OUTDATED,
            )) {
                play.failAlways(code)
                val evidence = attest(configuration(AndroidProof.EITHER, requests))
                assertNull(evidence.proof)
                assertNotNull(evidence.keyAttestation)
                for (proof in listOf(AndroidProof.PLAY_INTEGRITY, AndroidProof.BOTH)) {
                    expect(Code.UNSUPPORTED) { attest(configuration(proof, requests)) }
                }
            }
        }
    }

    @Test
    fun `if Google does not answer twice, the key attestation is sent alone`() {
        val configuration = configuration(AndroidProof.EITHER)
        val key = configuration.keyStore.create(ALIAS, CHALLENGE)
        play.failAlways(StandardIntegrityErrorCode.NETWORK_ERROR)
        expect(Code.UNAVAILABLE) { configuration.attestation.attest(subject(key)) }
        val evidence = runBlocking { configuration.attestation.attest(subject(key)) }
        assertNull(evidence.proof)
        assertNotNull(evidence.keyAttestation)
        // For a new challenge, Google is asked again.
        val renewed = ByteArray(32) { 9 }
        val other = configuration.keyStore.create(ALIAS, renewed)
        expect(Code.UNAVAILABLE) { configuration.attestation.attest(subject(other, renewed)) }
    }

    @Test
    fun `where Google does not answer, two apps that register at once each send their chain at the second time`() {
        val configuration = configuration(AndroidProof.EITHER)
        val subjects = listOf(ALIAS to CHALLENGE, "$ALIAS.other" to ByteArray(32) { 9 }).map { (alias, challenge) ->
            subject(configuration.keyStore.create(alias, challenge), challenge, alias)
        }
        play.failAlways(StandardIntegrityErrorCode.NETWORK_ERROR)
        for (subject in subjects) expect(Code.UNAVAILABLE) { configuration.attestation.attest(subject) }
        for (subject in subjects) assertNotNull(runBlocking { configuration.attestation.attest(subject) }.keyAttestation)
    }

    @Test
    fun `a device with neither proof is told so`() {
        phone.keystore.attestation = KeystoreDaemon.Attestation.NONE
        play.failAlways(StandardIntegrityErrorCode.PLAY_STORE_NOT_FOUND)
        expect(Code.UNSUPPORTED) { attest(configuration(AndroidProof.EITHER)) }
    }

    @Test
    fun `Google's refusal is final, whatever the key's own attestation says`() {
        for (code in listOf(IntegrityErrorCode.APP_UID_MISMATCH, IntegrityErrorCode.APP_NOT_INSTALLED)) {
            for (requests in IntegrityRequests.entries) {
                play.failAlways(code)
                for (proof in listOf(AndroidProof.EITHER, AndroidProof.BOTH, AndroidProof.PLAY_INTEGRITY)) {
                    expect(Code.REFUSED) { attest(configuration(proof, requests)) }
                }
            }
        }
    }

    @Test
    fun `errors that Google calls transient have recovery RETRY`() {
        val common = listOf(
            IntegrityErrorCode.NETWORK_ERROR, IntegrityErrorCode.TOO_MANY_REQUESTS, IntegrityErrorCode.GOOGLE_SERVER_UNAVAILABLE,
            IntegrityErrorCode.INTERNAL_ERROR, PlayStandIn.cancels(),
        )
        for (code in common + StandardIntegrityErrorCode.CLIENT_TRANSIENT_ERROR) {
            play.failAlways(code)
            expect(Code.UNAVAILABLE) { attest(configuration(AndroidProof.PLAY_INTEGRITY)) }
        }
        for (code in common + IntegrityErrorCode.CLIENT_TRANSIENT_ERROR) {
            play.failAlways(code)
            expect(Code.UNAVAILABLE) { attest(configuration(AndroidProof.PLAY_INTEGRITY, IntegrityRequests.CLASSIC)) }
        }
    }

    @Test
    fun `an API that is not enabled switches to no other proof`() {
        play.failAlways(IntegrityErrorCode.API_NOT_AVAILABLE)
        for (requests in IntegrityRequests.entries) {
            for (proof in listOf(AndroidProof.EITHER, AndroidProof.BOTH, AndroidProof.PLAY_INTEGRITY)) {
                expect(Code.MISCONFIGURED) { attest(configuration(proof, requests)) }
            }
        }
    }

    @Test
    fun `what the user can do is a value, with an intent`() {
        for ((code, remedy) in mapOf(
            IntegrityErrorCode.CANNOT_BIND_TO_SERVICE to PlayRemedy.UPDATE_PLAY_STORE,
            IntegrityErrorCode.PLAY_STORE_VERSION_OUTDATED to PlayRemedy.UPDATE_PLAY_STORE,
            IntegrityErrorCode.PLAY_SERVICES_VERSION_OUTDATED to PlayRemedy.UPDATE_PLAY_SERVICES,
            IntegrityErrorCode.PLAY_STORE_ACCOUNT_NOT_FOUND to PlayRemedy.SIGN_IN,
            IntegrityErrorCode.NETWORK_ERROR to null, IntegrityErrorCode.APP_UID_MISMATCH to null,
        )) {
            play.failAlways(code)
            val failure = assertThrows(AttestationException::class.java) {
                attest(configuration(AndroidProof.PLAY_INTEGRITY, IntegrityRequests.CLASSIC))
            }
            assertEquals("$code", remedy, PlayRemedy.of(failure))
            assertEquals(remedy == null, remedy?.intent() == null)
        }
        assertEquals("android.intent.action.VIEW market://details?id=com.google.android.gms", "${PlayRemedy.UPDATE_PLAY_SERVICES.intent()}")
    }

    @Test
    fun `a request hash of 500 bytes and a nonce of another length are not asked for`() {
        for (requests in IntegrityRequests.entries) {
            val configuration = configuration(AndroidProof.PLAY_INTEGRITY, requests)
            val key = configuration.keyStore.create(ALIAS, null)
            for (length in if (requests == IntegrityRequests.STANDARD) listOf(500, 501) else listOf(15, 501)) {
                val long = AttestationSubject("com.example.app", ALIAS, key, CHALLENGE, "n".repeat(length))
                expect(Code.REFUSED) { configuration.attestation.attest(long) }
            }
        }
        assertEquals(0, play.requests.get())
    }

    @Test
    fun `configuring prepares a provider, which the first registration waits for`() {
        val configured = configuration(AndroidProof.PLAY_INTEGRITY)
        play.answersLate(true)
        val client = SynheartAuth()
        client.configure(configured)
        while (play.warmUps.get() == 0) Thread.onSpinWait()
        client.configure(configured)
        val key = configured.keyStore.create(ALIAS, null)
        runBlocking {
            val tokens = (1..8).map { async(Dispatchers.Default) { configured.attestation.attest(subject(key)) } }
            // Completes the warm-up, and then the eight requests.
            while (tokens.any { it.isActive }) if (play.answerLate() == 0) delay(1)
            tokens.awaitAll()
        }
        assertEquals(1, play.warmUps.get())
    }

    @Test
    fun `a project number that Google does not know is a wrong configuration`() {
        play.failAlways(IntegrityErrorCode.CLOUD_PROJECT_NUMBER_IS_INVALID)
        for (requests in IntegrityRequests.entries) expect(Code.MISCONFIGURED) { attest(configuration(AndroidProof.EITHER, requests)) }
        val none = AndroidConfiguration("https://auth.example.com", requests = IntegrityRequests.STANDARD).with(phone.device.context()) {}
        expect(Code.MISCONFIGURED) { attest(none) }
    }

    @Test
    fun `without a project number requests are classic`() {
        assertEquals(IntegrityRequests.CLASSIC, AndroidConfiguration("https://auth.example.com").requests)
        assertEquals(IntegrityRequests.STANDARD, AndroidConfiguration("https://auth.example.com", cloudProjectNumber = 7).requests)
        assertTrue(attest(configuration(AndroidProof.EITHER, IntegrityRequests.CLASSIC)).proof!!.count { it == '.' } == 4)
        assertFalse(attest(configuration(AndroidProof.EITHER)).proof!!.contains('.'))
    }

    // The provider of standard requests

    @Test
    fun `the token provider is prepared once`() {
        val configuration = configuration(AndroidProof.PLAY_INTEGRITY)
        repeat(3) { attest(configuration) }
        assertEquals(1, play.warmUps.get())
        assertEquals(3, play.requests.get())
    }

    @Test
    fun `concurrent requests prepare one provider`() {
        val configuration = configuration(AndroidProof.PLAY_INTEGRITY)
        val key = configuration.keyStore.create(ALIAS, null)
        runBlocking { (1..8).map { async { configuration.attestation.attest(subject(key)) } }.awaitAll() }
        assertEquals(1, play.warmUps.get())
    }

    @Test
    fun `a provider that became invalid is prepared again, once`() {
        val configuration = configuration(AndroidProof.PLAY_INTEGRITY)
        attest(configuration)
        play.invalidateProviders()
        assertNotNull(attest(configuration).proof)
        assertEquals(2, play.warmUps.get())
        play.failAlways(0)
        play.failRequests(StandardIntegrityErrorCode.INTEGRITY_TOKEN_PROVIDER_INVALID, StandardIntegrityErrorCode.INTEGRITY_TOKEN_PROVIDER_INVALID)
        expect(Code.UNAVAILABLE) { attest(configuration) }
        assertNotNull(attest(configuration).proof)
    }

    @Test
    fun `a preparation that failed is not remembered`() {
        val configuration = configuration(AndroidProof.PLAY_INTEGRITY)
        play.failWarmUps(StandardIntegrityErrorCode.NETWORK_ERROR)
        expect(Code.UNAVAILABLE) { attest(configuration) }
        assertNotNull(attest(configuration).proof)
    }

    @Test
    fun `a caller that stops waiting for Google does not block the next one`() {
        val configuration = configuration(AndroidProof.PLAY_INTEGRITY)
        val key = configuration.keyStore.create(ALIAS, null)
        play.failWarmUps(PlayStandIn.neverAnswers())
        play.failRequests(PlayStandIn.neverAnswers())
        // Both requests wait for the same warm-up, which is abandoned after a minute.
        repeat(2) {
            assertThrows(TimeoutCancellationException::class.java) {
                runBlocking { withTimeout(50) { configuration.attestation.attest(subject(key)) } }
            }
        }
        assertEquals(1, play.warmUps.get())
        SystemClock.offsetMillis += 60_000
        assertThrows(TimeoutCancellationException::class.java) {
            runBlocking { withTimeout(50) { configuration.attestation.attest(subject(key)) } }
        }
        assertNotNull(runBlocking { configuration.attestation.attest(subject(key)) }.proof)
        assertEquals(2, play.warmUps.get())
    }

    // An app that does not contain Google's library

    @Test
    fun `an app without Google's library sends its chain alone, and is told where it needs a token`() {
        val standIns = File(System.getProperty("java.class.path").split(':').first { File(it, "com/google").isDirectory })
        val others = File(phone.path.toFile(), "standins")
        for (part in listOf("ai", "android")) File(standIns, part).copyRecursively(File(others, part))
        val process = ProcessBuilder(
            "${System.getProperty("java.home")}/bin/java", "-cp", System.getProperty("java.class.path").replace("$standIns", "$others"),
            "ai.synheart.auth.android.WithoutPlay", "${phone.path}/phone",
        ).redirectError(ProcessBuilder.Redirect.INHERIT).start()
        assertEquals("chain alone, then UNSUPPORTED", process.inputStream.bufferedReader().use { it.readLine() })
    }
}

/** Runs without Google's classes. */
object WithoutPlay {
    @JvmStatic
    fun main(arguments: Array<String>): Unit = runBlocking {
        val context = StandInDevice.start(File(arguments[0]).toPath()).context()
        val either = AndroidConfiguration("https://auth.example.com", cloudProjectNumber = 7).with(context)
        val key = either.keyStore.create(ALIAS, CHALLENGE)
        val subject = AttestationSubject("com.example.app", ALIAS, key, CHALLENGE, "n".repeat(43))
        val evidence = either.attestation.attest(subject)
        val needed = AndroidConfiguration("https://auth.example.com", proof = AndroidProof.BOTH).with(context)
        val failure = try {
            needed.attestation.attest(subject)
            "none"
        } catch (error: AttestationException) {
            error.code.name
        }
        println((if (evidence.proof == null && evidence.keyAttestation != null) "chain alone" else "something else") + ", then $failure")
    }
}
