package ai.synheart.auth.android

import ai.synheart.auth.DeviceKeyStore
import ai.synheart.auth.DeviceKeyStoreException
import ai.synheart.auth.DeviceKeyStoreException.Code
import android.os.Build
import android.security.keystore.KeyGenParameterSpec
import android.security.keystore.KeyProperties
import java.security.KeyPairGenerator
import java.security.PrivateKey
import java.security.PublicKey
import java.security.Signature
import java.security.interfaces.ECPublicKey
import java.security.spec.ECGenParameterSpec

/**
 * Keys in the Android Keystore: in the StrongBox if there is one, else in the trusted execution environment.
 *
 * @param attestation whether keys are attested, and whether a key without attestation is better than none
 * @param usesStrongBox whether to try the StrongBox first
 */
internal class AndroidKeyStore(
    private val keystore: Keystore, private val attestation: Attestation, private val usesStrongBox: Boolean,
) : DeviceKeyStore {
    enum class Attestation { NEVER, IF_POSSIBLE, ALWAYS }

    override val attestsKeys: Boolean get() = attestation != Attestation.NEVER

    /** One way to make a key. */
    private class Way(val isInStrongBox: Boolean, val isAttested: Boolean)

    private fun ways(isAttested: Boolean): List<Way> = buildList {
        val hasStrongBoxApi = Build.VERSION.SDK_INT >= 28
        if (usesStrongBox && hasStrongBoxApi) add(Way(isInStrongBox = true, isAttested))
        add(Way(isInStrongBox = false, isAttested))
        if (isAttested && attestation == Attestation.IF_POSSIBLE) {
            if (usesStrongBox && hasStrongBoxApi) add(Way(isInStrongBox = true, isAttested = false))
            add(Way(isInStrongBox = false, isAttested = false))
        }
    }

    /**
     * Makes a key in the best way that works. Hardware that is busy gets [BUSY_ATTEMPTS] attempts, with a pause between them, before
     * the next way. A failure also deletes the key that was to be replaced: Android does so since version 12.
     */
    override fun create(alias: String, challenge: ByteArray?): ByteArray {
        val ways = ways(isAttested = challenge != null && attestsKeys)
        var failures = emptyList<DeviceKeyStoreException>()
        for (way in ways) {
            for (attempt in 1..BUSY_ATTEMPTS) {
                val failure = try {
                    return generate(alias, challenge.takeIf { way.isAttested }, way.isInStrongBox)
                } catch (error: Exception) {
                    error as? DeviceKeyStoreException ?: Keystore.failure(error)
                }
                failures = failures + failure
                if (failure.code != Code.UNAVAILABLE) break
                if (attempt < BUSY_ATTEMPTS) keystore.pause()
            }
        }
        // Hardware that is only busy may make the key later.
        throw failures.firstOrNull { it.code == Code.UNAVAILABLE } ?: failures.last()
    }

    private fun generate(alias: String, challenge: ByteArray?, isInStrongBox: Boolean): ByteArray {
        val builder = KeyGenParameterSpec.Builder(keystore.name(alias), KeyProperties.PURPOSE_SIGN)
            .setAlgorithmParameterSpec(ECGenParameterSpec("secp256r1"))
            .setDigests(KeyProperties.DIGEST_SHA256)
            .setAttestationChallenge(challenge)
        if (isInStrongBox && Build.VERSION.SDK_INT >= 28) builder.setIsStrongBoxBacked(true)
        val pair = KeyPairGenerator.getInstance(KeyProperties.KEY_ALGORITHM_EC, Keystore.PROVIDER).run {
            initialize(builder.build())
            generateKeyPair()
        }
        return encoding(pair.public)
    }

    override fun load(alias: String): ByteArray? {
        if (keystore.find(alias) == null) return null
        return encoding(keystore.chain(alias).first().publicKey)
    }

    override fun sign(alias: String, message: ByteArray): ByteArray = keystore.using {
        val key = keystore.find(alias) ?: throw DeviceKeyStoreException(Code.NOT_FOUND, "no such key")
        if (key !is PrivateKey) throw DeviceKeyStoreException(Code.FAILED, "not a private key")
        try {
            sign(key, message)
        } catch (error: Exception) {
            // The hardware has few operations, and drops one for another app.
            if (KeystoreFault.of(error) != KeystoreFault.OPERATION_DROPPED) throw error
            sign(key, message)
        }
    }

    private fun sign(key: PrivateKey, message: ByteArray): ByteArray = Signature.getInstance("SHA256withECDSA").run {
        initSign(key)
        update(message)
        sign()
    }

    override fun delete(alias: String): Unit = keystore.delete(alias)

    private fun encoding(key: PublicKey): ByteArray {
        val bytes = key.encoded
        if (key !is ECPublicKey || bytes?.size != SPKI_LENGTH) throw DeviceKeyStoreException(Code.FAILED, "not a P-256 key")
        return bytes
    }

    private companion object {
        const val BUSY_ATTEMPTS = 3

        /** A P-256 key as SubjectPublicKeyInfo. */
        const val SPKI_LENGTH = 91
    }
}
