package ai.synheart.auth

import ai.synheart.auth.wire.JsonNumber
import ai.synheart.auth.wire.JsonObject
import ai.synheart.auth.wire.parseJson
import java.io.File
import java.security.KeyFactory
import java.security.Signature
import java.security.spec.X509EncodedKeySpec

/** The files of `docs/vectors`, read with the client's own JSON reader. */
internal object Vectors {
    private val folder = File(System.getProperty("synheart.repository"), "docs/vectors")

    fun file(name: String): JsonObject = parseJson(File(folder, "$name.json").readBytes(), maximumBytes = 10_000_000) as JsonObject

    fun cases(file: String, list: String): List<JsonObject> =
        file(file).array(list).map { it as JsonObject }.also { check(it.isNotEmpty()) { "$file has no $list" } }

    /** The SPKI of a key of `keys.json`. */
    fun key(name: String): ByteArray =
        cases("keys", "keys").first { it.string("name") == name }.string("public_key").let { java.util.Base64.getDecoder().decode(it) }
}

internal fun JsonObject.hexBytes(name: String): ByteArray = string(name).chunked(2).map { it.toInt(16).toByte() }.toByteArray()

internal fun JsonObject.double(name: String): Double = (members[name] as JsonNumber).digits.toDouble()

/** Whether Java's own cryptography verifies a signature of a P-256 key. */
internal fun verifies(spki: ByteArray, message: ByteArray, signature: ByteArray, algorithm: String = "SHA256withECDSA"): Boolean =
    Signature.getInstance(algorithm).run {
        initVerify(KeyFactory.getInstance("EC").generatePublic(X509EncodedKeySpec(spki)))
        update(message)
        try {
            verify(signature)
        } catch (_: java.security.SignatureException) {
            false
        }
    }
