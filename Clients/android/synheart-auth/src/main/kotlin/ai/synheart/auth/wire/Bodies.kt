package ai.synheart.auth.wire

import ai.synheart.auth.DeviceStatus
import ai.synheart.auth.RotationReason

/** The answer to a challenge request. */
internal class ChallengeAnswer(val challenge: ByteArray, val lifeSeconds: Long) {
    companion object {
        fun parse(json: JsonObject): ChallengeAnswer {
            val challenge = decodeBase64(json.string("challenge"))
            val life = json.long("ttl_seconds")
            if (challenge == null || challenge.size < 32 || life <= 0) throw FormException("the answer is not a challenge")
            return ChallengeAnswer(challenge, life)
        }
    }
}

internal fun challengeRequest(appId: String, purpose: String): ByteArray = writeJson("app_id" to appId, "purpose" to purpose)

internal fun registerRequest(
    appId: String, publicKeyText: String, challenge: ByteArray, proof: String?, keyProof: ByteArray, keyAttestation: List<ByteArray>?,
    deviceLocalId: String?,
): ByteArray = writeJson(
    "app_id" to appId, "public_key" to publicKeyText, "challenge" to challenge.base64(), "platform" to PLATFORM, "proof" to proof,
    "key_proof" to keyProof.base64(), "key_attestation" to keyAttestation?.map { it.base64() }, "device_local_id" to deviceLocalId,
)

/** The answer to a registration. */
internal class RegisterAnswer(val deviceId: String, val status: Status) {
    enum class Status(val wire: String) { REGISTERED("registered"), PENDING("pending"), REJECTED("rejected") }

    companion object {
        fun parse(json: JsonObject) =
            RegisterAnswer(json.deviceId(), json.choice("status", Status.entries, Status::wire))
    }
}

internal fun rotateRequest(
    appId: String, deviceId: String, newPublicKeyText: String, reason: RotationReason, newKeyProof: ByteArray, challenge: ByteArray?,
    proof: String?, keyAttestation: List<ByteArray>?,
): ByteArray = writeJson(
    "app_id" to appId, "device_id" to deviceId, "new_public_key" to newPublicKeyText, "reason" to reason.wire,
    "new_key_proof" to newKeyProof.base64(), "challenge" to challenge?.base64(), "proof" to proof,
    "key_attestation" to keyAttestation?.map { it.base64() },
)

/** The time at which the new key became the current one: unix seconds. */
internal fun rotateAnswer(json: JsonObject): Long {
    if (json.string("status") != "rotated") throw FormException("status is not rotated")
    return json.long("effective_at")
}

internal fun tokenRequest(audience: String?): ByteArray = writeJson("audience" to audience)

/** The answer to a token request. */
internal class TokenAnswer(val token: String, val lifeSeconds: Long) {
    companion object {
        fun parse(json: JsonObject): TokenAnswer {
            if (json.string("token_type") != "synheart-device+jwt") throw FormException("token_type is another one")
            return TokenAnswer(json.string("token"), json.long("expires_in"))
        }
    }
}

internal fun statusAnswer(json: JsonObject) = DeviceStatus(
    deviceId = json.deviceId(),
    status = json.choice("status", DeviceStatus.Status.entries, DeviceStatus.Status::wire),
    registeredAt = json.long("registered_at"),
    keyRotatedAt = json.optionalLong("key_rotated_at"),
    keyAgeSeconds = json.long("key_age_seconds"),
    keyThumbprint = json.string("key_thumbprint"),
    mustRotate = json.boolean("must_rotate"),
    serverTimestamp = json.long("server_timestamp"),
)

/** The platform that the service checks the evidence for. */
internal const val PLATFORM = "android"

private fun JsonObject.deviceId(): String = string("device_id").also { if (!isDeviceId(it)) throw FormException("device_id is not an id") }
