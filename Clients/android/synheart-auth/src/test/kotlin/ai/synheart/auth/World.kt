package ai.synheart.auth

import ai.synheart.auth.android.AndroidProof
import ai.synheart.auth.identity.IdentityRecord
import ai.synheart.auth.wire.hex
import ai.synheart.auth.wire.sha256
import java.util.concurrent.CopyOnWriteArrayList
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.runBlocking
import org.junit.Assert.assertEquals
import org.junit.Assert.assertThrows

/** A phone, an app on the real service, and a client. */
internal class World(val phone: TestPhone, val appId: String) {
    var client = phone.client()
    val service: RunningService get() = phone.service
    val statusUrl: String = "${service.publicUrl}/auth/v1/device/status"

    /** The paths of the requests that were sent. */
    val requests = CopyOnWriteArrayList<String>()

    /** Answers that replace those of the service, by path. Each is used once. */
    private val answers = CopyOnWriteArrayList<Pair<String, suspend (suspend () -> HttpResponse) -> HttpResponse>>()

    init {
        phone.network = { request, send ->
            val path = TestPhone.path(request)
            requests.add(path)
            val answer = answers.find { path.startsWith(it.first) }
            if (answer != null) answers.remove(answer)
            if (answer == null) send(request) else answer.second { send(request) }
        }
    }

    /** The next requests to this path get these answers, and do not reach the service. */
    fun answer(path: String, vararg scripted: HttpResponse) = scripted.forEach { answer -> answers.add(path to { answer }) }

    /** The next requests to this path do not arrive. */
    fun loseRequest(path: String, times: Int = 1) = repeat(times) { answers.add(path to { throw TransportException("lost") }) }

    /** The next requests to this path arrive, but their answers are lost. */
    fun loseAnswer(path: String, times: Int = 1) = repeat(times) {
        answers.add(path to { send ->
            send()
            throw TransportException("lost")
        })
    }

    /** Replaces the next request to this path by this function. */
    fun at(path: String, what: suspend (suspend () -> HttpResponse) -> HttpResponse) {
        answers.add(path to what)
    }

    /** Dates the next status answer 16 minutes ahead. A copy of a rotation request can take effect for 15 minutes. */
    fun expireCopies() = at(STATUS) { send ->
        val answer = send()
        val late = String(answer.body).replace(Regex("\"server_timestamp\":\\d+"), "\"server_timestamp\":${System.currentTimeMillis() / 1000 + 960}")
        HttpResponse(answer.status, answer.headers, late.toByteArray())
    }

    /** Drops all scripted answers: every request and answer arrives. */
    fun forgetAnswers() = answers.clear()

    fun count(path: String) = requests.count { it == path }

    /** Starts another process of the app. */
    fun restart() {
        phone.restart()
        client = phone.client()
    }

    suspend fun register() = client.registerDevice(appId)

    suspend fun send(url: String = statusUrl, method: String = "GET", scheme: SignatureScheme? = null) =
        (if (scheme == null) client else client(scheme)).send(appId, HttpRequest(method, url))

    /** A client of an app that signs under this scheme. */
    fun client(scheme: SignatureScheme) = SynheartAuth(phone.configuration(scheme = scheme))

    /** Checks that the first answer "the key is lost" is not believed, and that the second one, 2 s later, is believed. */
    suspend fun expectLost(operation: suspend () -> Any?) {
        val suspected = expect<SynheartAuthException.KeystoreError>(Recovery.RETRY) { operation() }
        assertEquals(2.seconds, suspected.retryAfter)
        passTwoSeconds()
        expect<SynheartAuthException.KeyInvalidated>(Recovery.REGISTER) { operation() }
    }

    fun passTwoSeconds() {
        phone.clock.elapsedOffset += 2_000
    }

    /** The record as it is stored. */
    fun record(): IdentityRecord =
        IdentityRecord.parse(phone.configuration().storage.read(sha256(appId.toByteArray()).hex())!!, appId)

    /** The rows of the app's devices that are not deregistered. */
    fun liveDevices() = service.devices(appId).filter { it.string("status") != "deregistered" }

    suspend fun expectWorking() {
        assertEquals(200, send().status)
        assertEquals(IdentityState.REGISTERED, client.state(appId))
    }

    companion object {
        const val CHALLENGE = "/auth/v1/device/challenge"
        const val REGISTER = "/auth/v1/device/register"
        const val ROTATE = "/auth/v1/device/rotate-key"
        const val STATUS = "/auth/v1/device/status"
        const val TOKEN = "/auth/v1/token"

        fun run(proof: AndroidProof = AndroidProof.PLAY_INTEGRITY, vararg edits: Pair<String, Any?>, body: suspend World.() -> Unit) =
            TestPhone(proof).use { phone -> runBlocking { World(phone, phone.service.newApp(phone.record(*edits))).body() } }
    }
}

/** Expects an error of a class. */
internal inline fun <reified Error : SynheartAuthException> expect(recovery: Recovery, crossinline body: suspend () -> Any?): Error =
    assertThrows(Error::class.java) { runBlocking { body() } }.also { assertEquals(recovery, it.recovery) }
