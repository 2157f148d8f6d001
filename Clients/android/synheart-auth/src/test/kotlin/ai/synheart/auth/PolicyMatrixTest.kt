package ai.synheart.auth

import ai.synheart.auth.android.AndroidProof
import ai.synheart.auth.wire.JsonObject
import ai.synheart.standins.StandInClock
import kotlin.time.Duration
import kotlin.time.Duration.Companion.days
import kotlin.time.Duration.Companion.hours
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.runBlocking
import org.junit.After
import org.junit.Assert.assertTrue
import org.junit.Test

/**
 * Every policy of an app record for Android phones (`docs/vectors/policies.json`), against every operation: an operation either
 * works or ends in an error whose recovery works. A test of the service checks that the file has all members of the app record.
 */
class PolicyMatrixTest {
    private class Setting(case: JsonObject) {
        private val path = case.string("path")
        val edits = checkNotNull(case.optionalObject("beside")).members.mapValues { plain(it.value) } + (path to plain(case.members.getValue("value")))

        /** The errors without a recovery that the policy intends. */
        val refusals = case.array("refusals").toSet()

        /** The status of the backend's answer to a request. */
        val apiStatus = case.long("api_status").toInt()

        /** Whether the policy is fixed once the app has devices. */
        val isFixed = path == "build_channel"
    }

    private val settings = Vectors.cases("policies", "policies").filter { "android" in it.array("platforms") }.map(::Setting)

    /** The time at which the operator sets the policy. */
    private enum class Moment(val edits: Map<String, Any?> = emptyMap()) {
        BEFORE_REGISTRATION,
        AFTER_REGISTRATION,
        WITH_REATTESTATION(mapOf("keys.reattest_on_rotation" to true)),
    }

    /** The common clock of the phone, the service and Google. */
    private class Time(private val service: RunningService) {
        private var now = Duration.ZERO

        fun move(by: Duration, phone: TestPhone) {
            now += by
            StandInClock.offsetMillis = now.inWholeMilliseconds
            service.moveClock(now)
            phone.clock.wallOffset = now.inWholeMilliseconds
            phone.clock.elapsedOffset += by.inWholeMilliseconds
        }
    }

    private class NoRecovery(val code: String, what: String, cause: SynheartAuthException) : Exception("$what: $cause", cause)

    private class Life(val phone: TestPhone, val setting: Setting, val time: Time) {
        private val service = phone.service

        // The record has no proofs and authorities, because the policies set them.
        private val record = phone.record().let { record ->
            val android = record.getValue("android") as Map<*, *>
            record - "signature" + ("android" to android - "proof" - "key_attestation")
        }
        private val appId = service.newApp(record)
        private val credential = service.backendCredential(appId)
        private val client = SynheartAuth(phone.configuration(origins = setOf(API)))

        init {
            time.move(Duration.ZERO, phone)
            phone.network = { request, send -> if (request.url.startsWith(API)) service.verify(request, credential) else send(request) }
        }

        private fun set(edits: Map<String, Any?>) {
            service.administer("PUT", "apps/$appId", TestPhone.edited(record, edits) + ("app_id" to appId))
        }

        /** Registers, and has the operator approve the device. */
        private suspend fun register() {
            val registration = client.registerDevice(appId)
            if (registration.status == Registration.Status.PENDING) {
                service.device(appId, registration.deviceId, "approve")
                check(client.registerDevice(appId).status == Registration.Status.REGISTERED)
            }
        }

        /** Performs an operation. After an error, follows its recovery, and repeats the operation. */
        private suspend fun perform(what: String, operation: suspend () -> Unit) {
            var last: SynheartAuthException? = null
            repeat(4) {
                try {
                    return operation()
                } catch (error: SynheartAuthException) {
                    last = error
                    when (error.recovery) {
                        Recovery.RETRY -> time.move(error.retryAfter ?: 1.seconds, phone)
                        Recovery.REGISTER -> register()
                        Recovery.ROTATE -> client.rotateKey(appId)
                        Recovery.RESET -> {
                            client.resetDeviceIdentity(appId, ResetReason.SERVER_INSTRUCTED)
                            register()
                        }
                        else -> throw NoRecovery(error.code, what, error)
                    }
                }
            }
            throw AssertionError("$what fails after each recovery: $last", last)
        }

        private suspend fun call(method: String, path: String) {
            val answer = client.send(appId, HttpRequest(method, "$API$path", emptyList(), if (method == "POST") byteArrayOf(1) else ByteArray(0)))
            check(answer.status == setting.apiStatus) { "$method $path: ${answer.status} ${String(answer.body)}" }
        }

        private suspend fun useEverything() {
            perform("status") { client.status(appId) }
            perform("GET") { call("GET", "/v1/pay/1") }
            perform("POST") { call("POST", "/v1/pay") }
            perform("sign") { client.sign(appId, "GET", "$API/v1/pay/1") }
            perform("token") { client.deviceToken(appId) }
            perform("rotate") { client.rotateKey(appId) }
            time.move(1.hours, phone)
            perform("rotate for compromise") { client.rotateKey(appId, RotationReason.COMPROMISE) }
            perform("GET") { call("GET", "/v1/pay/1") }
        }

        /** The whole life of a device under the policy. */
        suspend fun live(moment: Moment) {
            try {
                if (moment == Moment.BEFORE_REGISTRATION) {
                    set(setting.edits)
                    register()
                } else {
                    register()
                    set(moment.edits + setting.edits)
                }
                useEverything()
                // The last rotation is now 91 days ago, so `maintain` must rotate.
                time.move(91.days, phone)
                perform("maintain") { client.maintain(appId) }
                useEverything()
                client.resetDeviceIdentity(appId, ResetReason.USER_REQUESTED)
                register()
                perform("token") { client.deviceToken(appId) }
            } catch (error: NoRecovery) {
                if (error.code !in setting.refusals) throw error
            } catch (error: SynheartAuthException) {
                if (error.code !in setting.refusals) throw error
            }
        }
    }

    private fun live(moment: Moment) {
        val failures = mutableListOf<String>()
        // If TEST_SAMPLE selects a part of the settings, each moment takes another part.
        val sampled = settings.filterIndexed { index, _ -> isSampled(index + moment.ordinal) }
        // Each life moves the service's clock by more than 91 days.
        for (some in sampled.filter { moment == Moment.BEFORE_REGISTRATION || !it.isFixed }.chunked(16)) {
            RunningService(movesItsClock = true).use { service ->
                val time = Time(service)
                for (setting in some) {
                    try {
                        TestPhone(AndroidProof.BOTH, service).use { phone -> runBlocking { Life(phone, setting, time).live(moment) } }
                    } catch (error: Throwable) {
                        failures.add("${setting.edits}: $error")
                    }
                }
            }
        }
        assertTrue("$moment:\n${failures.joinToString("\n")}", failures.isEmpty())
    }

    @After
    fun resetClock() {
        StandInClock.offsetMillis = 0
    }

    @Test
    fun `under a policy set before the registration, each operation works or fails with an intended error`() = live(Moment.BEFORE_REGISTRATION)

    @Test
    fun `a policy from after the registration works, or its recovery does`() = live(Moment.AFTER_REGISTRATION)

    @Test
    fun `under a policy set together with re-attestation, each operation works, or works after its recovery`() = live(Moment.WITH_REATTESTATION)

    private companion object {
        const val API = "https://api.test"
    }
}
