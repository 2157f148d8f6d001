package ai.synheart.auth

import ai.synheart.auth.identity.Cause
import ai.synheart.auth.identity.ClockOffset
import ai.synheart.auth.identity.StateTable
import ai.synheart.auth.wire.FormException
import ai.synheart.auth.wire.JsonObject
import ai.synheart.auth.wire.PublicKey
import ai.synheart.auth.wire.RequestOrigin
import ai.synheart.auth.wire.RequestTarget
import ai.synheart.auth.wire.RotationDemand
import ai.synheart.auth.wire.SchemeTwo
import ai.synheart.auth.wire.base64
import ai.synheart.auth.wire.base64Url
import ai.synheart.auth.wire.bindingNonce
import ai.synheart.auth.wire.checkPath
import ai.synheart.auth.wire.contentDigest
import ai.synheart.auth.wire.decodeBase64
import ai.synheart.auth.wire.decodeBase64Url
import ai.synheart.auth.wire.error
import ai.synheart.auth.wire.hex
import ai.synheart.auth.wire.isAppId
import ai.synheart.auth.wire.isDeviceId
import ai.synheart.auth.wire.rawSignature
import ai.synheart.auth.wire.registrationProofMessage
import ai.synheart.auth.wire.retryAfter
import ai.synheart.auth.wire.rotationNonce
import ai.synheart.auth.wire.rotationProofMessage
import ai.synheart.auth.wire.schemeOneMessage
import ai.synheart.auth.wire.serverTime
import ai.synheart.auth.wire.sha256
import ai.synheart.auth.wire.unixTimeOrNull
import ai.synheart.auth.wire.uuid
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import org.junit.Assert.assertArrayEquals
import org.junit.Assert.assertEquals
import org.junit.Test

/** The protocol's vectors for clients. */
class VectorTest {
    private fun each(file: String, list: String, body: (JsonObject) -> Unit) {
        for (case in Vectors.cases(file, list)) {
            try {
                body(case)
            } catch (error: Throwable) {
                throw AssertionError("$file, $list: ${case.members.values.filterIsInstance<String>().firstOrNull()}: $error", error)
            }
        }
    }

    private fun <Value> ok(body: () -> Value): Value? = try {
        body()
    } catch (_: FormException) {
        null
    }

    @Test
    fun `keys have their wire text and their thumbprint`() = each("keys", "keys") {
        val key = PublicKey.of(it.hexBytes("x963_hex"))
        assertEquals(it.string("public_key"), key.base64)
        assertEquals(it.string("thumbprint"), key.thumbprint)
    }

    @Test
    fun `ids and times are read strictly`() {
        each("encodings", "app_ids") { assertEquals(it.boolean("valid"), isAppId(it.string("text"))) }
        each("encodings", "device_ids") { assertEquals(it.boolean("valid"), isDeviceId(it.string("text"))) }
        // Request nonces have the form of device ids.
        repeat(100) { assert(isDeviceId(SystemRandom.uuid())) }
        each("encodings", "timestamps") { assertEquals(it.optionalLong("seconds"), unixTimeOrNull(it.string("text"))) }
    }

    @Test
    fun `base64 is canonical`() {
        each("encodings", "base64") {
            val bytes = decodeBase64(it.string("text"))
            assertEquals(it.optionalString("bytes_hex"), bytes?.hex())
            if (bytes != null) assertEquals(it.string("text"), bytes.base64())
        }
        each("encodings", "base64url") {
            val bytes = decodeBase64Url(it.string("text"))
            assertEquals(it.optionalString("bytes_hex"), bytes?.hex())
            if (bytes != null) assertEquals(it.string("text"), bytes.base64Url())
        }
    }

    @Test
    fun `a public key is an uncompressed point on the curve`() = each("encodings", "public_keys") {
        val key = decodeBase64(it.string("text"))?.let { bytes -> ok { PublicKey.of(bytes) } }
        assertEquals(it.optionalString("public_key"), key?.base64)
        assertEquals(it.optionalString("thumbprint"), key?.thumbprint)
    }

    @Test
    fun `a signature is strict DER`() = each("encodings", "signatures") {
        val raw = decodeBase64(it.string("text"))?.let { bytes -> ok { rawSignature(bytes) } }
        val expected = it.optionalString("r_hex")?.plus(it.string("s_hex"))
        assertEquals(expected, raw?.hex())
    }

    @Test
    fun `JSON is read strictly by RFC 8259`() = each("encodings", "challenge_requests") {
        val purpose = ok {
            val json = JsonObject.parse(it.hexBytes("body_hex"))
            if (!isAppId(json.string("app_id"))) throw FormException("app_id")
            val purpose = json.optionalString("purpose") ?: "register"
            if (purpose != "register" && purpose != "rotate") throw FormException("purpose")
            purpose
        }
        assertEquals(it.optionalString("purpose"), purpose)
    }

    @Test
    fun `a registration binds the challenge and the key's text`() {
        each("registration", "bindings") {
            val challenge = decodeBase64(it.string("challenge"))!!
            assertArrayEquals(it.hexBytes("challenge_hex"), challenge)
            val nonce = bindingNonce(challenge, it.string("public_key"))
            assertEquals(it.string("binding_nonce_hex"), nonce.hex())
            assertEquals(it.string("play_nonce"), nonce.base64Url())
            assertEquals(it.string("key_proof_message_hex"), registrationProofMessage(nonce).hex())
        }
        each("registration", "key_proofs") {
            val message = registrationProofMessage(it.hexBytes("binding_nonce_hex"))
            val proof = decodeBase64(it.string("key_proof"))?.takeIf { der -> ok { rawSignature(der) } != null }
            val key = PublicKey.of(decodeBase64(it.string("public_key"))!!)
            assertEquals(it.boolean("verifies"), proof != null && verifies(key.spki, message, proof))
        }
    }

    @Test
    fun `a rotation binds the device and the new key`() {
        each("rotation", "new_key_proofs") {
            val message = rotationProofMessage(it.string("device_id"), it.string("new_public_key"))
            assertEquals(it.string("message_hex"), message.hex())
            val proof = decodeBase64(it.string("new_key_proof"))?.takeIf { der -> ok { rawSignature(der) } != null }
            val key = PublicKey.of(decodeBase64(it.string("new_public_key"))!!)
            assertEquals(it.boolean("verifies"), proof != null && verifies(key.spki, message, proof))
        }
        each("rotation", "rotation_nonces") {
            val nonce = rotationNonce(decodeBase64(it.string("challenge"))!!, it.string("device_id"), it.string("new_public_key"))
            assertEquals(it.string("rotation_nonce_hex"), nonce.hex())
            assertEquals(it.string("play_nonce"), nonce.base64Url())
        }
        each("rotation", "rotate_fields") {
            val demand = RotationDemand.parse(it.string("text"))
            assertEquals(it.optionalLong("by"), demand?.by)
            if (demand != null) assertEquals(it.optionalString("reason") ?: "scheduled", demand.reason.wire)
        }
    }

    @Test
    fun `scheme 1 signs method, path, time and body`() {
        each("scheme1", "messages") {
            val message = schemeOneMessage(it.string("method"), it.string("path"), it.long("timestamp"), it.hexBytes("body_hex"))
            assertEquals(it.string("message_hex"), message.hex())
            assert(verifies(Vectors.key(it.string("key")), message, decodeBase64(it.string("signature"))!!))
        }
        each("scheme1", "paths") { assertEquals(it.boolean("valid"), ok { checkPath(it.string("path")) } != null) }
        each("scheme1", "targets") {
            val target = ok { RequestTarget.parse(it.string("target")) }
            assertEquals(it.boolean("valid"), target != null)
            assertEquals(it.optionalString("path"), target?.path)
            assertEquals(it.optionalString("query"), target?.query)
        }
    }

    @Test
    fun `scheme 2 signs the base of RFC 9421`() {
        each("scheme2", "origins") {
            val origin = ok { RequestOrigin.of(it.string("scheme"), it.string("authority")) }
            assertEquals(it.optionalString("normal_scheme"), origin?.scheme)
            assertEquals(it.optionalString("normal_authority"), origin?.authority)
        }
        each("scheme2", "content_digests") { assertEquals(it.string("content_digest"), contentDigest(it.hexBytes("body_hex"))) }
        each("scheme2", "bases") {
            val parameters = it.string("signature_params")
            val digest = contentDigest(it.hexBytes("body_hex"))
            assertEquals(it.string("content_digest"), digest)
            val target = RequestTarget.parse(it.string("path") + it.optionalString("query")?.let { query -> "?$query" }.orEmpty())
            val base = SchemeTwo.base(
                it.string("method"), RequestOrigin.of(it.string("scheme"), it.string("authority")), target, digest,
                it.string("app_id"), it.string("device_id"), parameters,
            )
            assertEquals(it.string("signature_base"), String(base))
            assertEquals(it.string("claim_hex"), sha256(base).hex())
            val key = Vectors.key(it.string("key"))
            assert(verifies(key, base, decodeBase64(it.string("signature"))!!, "SHA256withECDSAinP1363Format"))
        }
        // The parameters of the first case are in the client's order. The client must write exactly the same text.
        val case = Vectors.cases("scheme2", "bases").first()
        val parameters = case.string("signature_params")
        fun value(name: String) = Regex(";$name=\"?([^\";]*)").find(parameters)!!.groupValues[1]
        assertEquals(parameters, SchemeTwo.parameters(value("created").toLong(), value("nonce"), value("keyid")))
    }

    @Test
    fun `every code has its recovery`() = each("errors", "codes") {
        val body = """{"error":"${it.string("code")}","message":"m","request_id":"r","server_timestamp":1700000000}"""
        val error = HttpResponse(it.long("status").toInt(), body = body.toByteArray()).error()
        assertEquals(it.string("client_code"), error.code)
        assertEquals(it.boolean("retryable"), error.isRetryable)
        assertEquals(it.string("recovery"), error.recovery.wire)
    }

    @Test
    fun `an answer is judged by its status and its form`() {
        each("errors", "answers") {
            val headers = it.array("headers").map { line -> (line as List<*>).let { (name, value) -> name as String to value as String } }
            val answer = HttpResponse(it.long("status").toInt(), headers, it.string("body").toByteArray())
            val error = answer.error()
            assertEquals(it.string("client_code"), error.code)
            assertEquals(it.boolean("retryable"), error.isRetryable)
            assertEquals(it.string("recovery"), error.recovery.wire)
            assertEquals(it.optionalLong("retry_after_seconds"), error.retryAfter?.inWholeSeconds)
            assertEquals(it.optionalLong("server_time"), answer.serverTime)
        }
        each("errors", "retry_after_fields") {
            val answer = HttpResponse(503, listOf("Retry-After" to it.string("text")))
            assertEquals(it.optionalLong("seconds"), answer.retryAfter?.inWholeSeconds)
        }
    }

    @Test
    fun `retries follow the policies`() {
        for (policy in Vectors.cases("retry", "policies")) {
            val own = policy(policy.string("name")) ?: continue
            assertEquals(policy.long("base_ms"), own.base.inWholeMilliseconds)
            assertEquals(policy.long("jitter_ms"), own.jitter.inWholeMilliseconds)
            assertEquals(policy.long("maximum_ms"), own.maximum.inWholeMilliseconds)
            assertEquals(policy.long("attempts"), own.attempts.toLong())
        }
        var count = 0
        each("retry", "delays") {
            val policy = policy(it.string("policy")) ?: return@each
            val delay = policy.delay(it.long("attempt").toInt(), it.double("random"), it.optionalLong("retry_after_seconds")?.seconds)
            assertEquals(it.optionalLong("delay_ms")?.milliseconds, delay)
            count++
        }
        assert(count > 15)
    }

    private fun policy(name: String) = RetryPolicy.entries.find { it.name.equals(name, ignoreCase = true) }

    @Test
    fun `the clock's offset is bounded and rounded down`() {
        each("clock", "offsets") {
            val offset = ClockOffset.of(it.long("server_time"), it.long("received_at_ms"), it.long("round_trip_ms"))
            assertEquals(it.optionalLong("offset_ms"), offset?.millis)
        }
        each("clock", "timestamps") {
            assertEquals(it.long("timestamp"), ClockOffset.of(it.long("offset_ms"))!!.serverTime(it.long("local_ms")))
        }
    }

    @Test
    fun `every pair of state and cause is in the table or an error`() {
        val file = Vectors.file("states")
        assertEquals(file.array("states"), IdentityState.entries.map { it.wire })
        assertEquals(file.array("causes").toSet(), Cause.entries.map { it.wire }.toSet())
        val rows = Vectors.cases("states", "transitions").associate { (it.string("from") to it.string("cause")) to it.string("to") }
        for (state in IdentityState.entries) {
            for (cause in Cause.entries) {
                val next = try {
                    StateTable.next(state, cause).wire
                } catch (error: SynheartAuthException.InvalidStateTransition) {
                    assertEquals(state, error.from)
                    null
                }
                assertEquals(rows[state.wire to cause.wire], next)
            }
        }
    }
}
