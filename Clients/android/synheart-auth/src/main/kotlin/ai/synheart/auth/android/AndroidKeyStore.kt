package ai.synheart.auth.android

import ai.synheart.auth.DeviceKeyStore
import ai.synheart.auth.DeviceKeyStoreException
import ai.synheart.auth.DeviceKeyStoreException.Code
import ai.synheart.auth.wire.hex
import ai.synheart.auth.wire.sha256
import android.os.Build
import android.os.SystemClock
import android.security.keystore.KeyGenParameterSpec
import android.security.keystore.KeyProperties
import java.security.KeyPairGenerator
import java.security.PrivateKey
import java.security.PublicKey
import java.security.Signature
import java.security.interfaces.ECPublicKey
import java.security.spec.ECGenParameterSpec
import java.util.Collections
import java.util.concurrent.ConcurrentHashMap

/**
 * Keys in the Android Keystore: in the trusted execution environment, or in the StrongBox where the app asks for it and there is one.
 *
 * With each key a canary is made: a key of the same kind and age that nothing else uses.
 *
 * @param attestation whether keys are attested, and whether a key without attestation is better than none
 * @param usesStrongBox whether to try the StrongBox first
 */
internal class AndroidKeyStore(
    private val keystore: Keystore, private val attestation: Attestation, private val usesStrongBox: Boolean,
) : DeviceKeyStore {
    enum class Attestation { NEVER, IF_POSSIBLE, ALWAYS }

    override val attestsKeys: Boolean get() = attestation != Attestation.NEVER

    /** The names of keys without attestation, made because the hardware was too busy to attest. */
    private val unattested: MutableSet<String> = Collections.newSetFromMap(ConcurrentHashMap())

    /** Whether a new key of this name may get the attestation that the present one lacks. */
    fun mayAttestLater(alias: String): Boolean = alias in unattested

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
     * Makes a key in the best way that works, and its canary. Busy hardware gets [BUSY_ATTEMPTS] attempts, with pauses, before
     * the next way is tried. A slow failure is not repeated: Android waits 10 s for the server that provisions attestation keys, and
     * three such waits would end the whole call. Since Android 12, a failure also deletes the key to be replaced.
     */
    override fun create(alias: String, challenge: ByteArray?): ByteArray {
        val ways = ways(isAttested = challenge != null && attestsKeys)
        var failures = emptyList<DeviceKeyStoreException>()
        unattested -= alias
        for (way in ways) {
            for (attempt in 1..BUSY_ATTEMPTS) {
                val startedAt = SystemClock.elapsedRealtime()
                val failure = try {
                    return generate(alias, challenge.takeIf { way.isAttested }, way.isInStrongBox).also {
                        if (way.isAttested) unattested -= alias
                        makeCanary(alias, way)
                    }
                } catch (error: Exception) {
                    error
                }
                val fault = KeystoreFault.of(failure)
                failures = failures + (failure as? DeviceKeyStoreException ?: KeystoreFault.exception(failure))
                if (fault != KeystoreFault.TEMPORARY && fault != KeystoreFault.OPERATION_DROPPED) break
                if (way.isAttested) unattested += alias
                if (SystemClock.elapsedRealtime() - startedAt > SLOW_MILLIS) break
                if (attempt < BUSY_ATTEMPTS) keystore.pause()
            }
        }
        // Prefer the failure of busy hardware: a later attempt may make the key.
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

    /** Makes the canary of a key (a test key). Ignores a failure: the key works without its canary, and [check] makes a missing canary. */
    private fun makeCanary(alias: String, way: Way) {
        try {
            generate(canary(alias), challenge = null, way.isInStrongBox)
        } catch (_: Exception) {
        }
    }

    override fun load(alias: String): ByteArray? {
        if (keystore.key(alias) == null) return null
        // On any failure the Keystore returns no certificates, so a missing chain does not prove that the key is lost.
        val leaf = keystore.chain(alias).firstOrNull() ?: throw DeviceKeyStoreException(Code.FAILED, "the Keystore does not give the certificate")
        return encoding(leaf.publicKey)
    }

    override fun sign(alias: String, message: ByteArray): ByteArray = keystore.guarded {
        val key = keystore.key(alias) ?: throw DeviceKeyStoreException(Code.NOT_FOUND, "no such key")
        if (key !is PrivateKey) throw DeviceKeyStoreException(Code.FAILED, "not a private key")
        try {
            sign(key, message)
        } catch (error: Exception) {
            // The hardware runs only a few operations at once, and may drop this one for another app's. If it did, sign once more.
            if (KeystoreFault.of(error) != KeystoreFault.OPERATION_DROPPED) throw error
            sign(key, message)
        }
    }

    private fun sign(key: PrivateKey, message: ByteArray): ByteArray = Signature.getInstance("SHA256withECDSA").run {
        initSign(key)
        update(message)
        sign()
    }

    /**
     * Signs with the canary (a test key). If the canary is missing, invalidated or fails, makes a new one: nothing depends
     * on it. If the Keystore is busy or absent, no canary is made. If the old canary was missing or invalidated, the new one
     * proves at once that the platform works. If the old canary failed for another reason, the platform may be broken. Then
     * this check throws that failure, and the next check, with the new canary, shows whether the platform works.
     */
    override fun check(alias: String) {
        val failure = try {
            sign(canary(alias), CANARY_MESSAGE)
            return
        } catch (error: DeviceKeyStoreException) {
            error
        }
        if (failure.code == Code.UNAVAILABLE || failure.code == Code.UNSUPPORTED) throw failure
        for (way in ways(isAttested = false)) {
            try {
                generate(canary(alias), challenge = null, way.isInStrongBox)
                break
            } catch (error: Exception) {
                // IMPOSSIBLE means that the phone has no StrongBox, so its keys are in the trusted execution environment. After any other
                // failure this key may still be in the StrongBox, and a canary elsewhere would not show whether the key is lost.
                if (way.isInStrongBox && KeystoreFault.of(error) == KeystoreFault.IMPOSSIBLE) continue
                throw KeystoreFault.exception(error)
            }
        }
        if (failure.code != Code.NOT_FOUND && failure.code != Code.INVALIDATED) throw failure
        sign(canary(alias), CANARY_MESSAGE)
    }

    override fun delete(alias: String) {
        keystore.delete(alias)
        try {
            keystore.delete(canary(alias))
        } catch (_: DeviceKeyStoreException) {
        }
    }

    private fun encoding(key: PublicKey): ByteArray {
        val bytes = key.encoded
        if (key !is ECPublicKey || bytes?.size != SPKI_LENGTH) throw DeviceKeyStoreException(Code.FAILED, "not a P-256 key")
        return bytes
    }

    companion object {
        private const val BUSY_ATTEMPTS = 3

        /** A failure that takes this long is not repeated. Busy hardware fails sooner. */
        private const val SLOW_MILLIS = 2_000L
        private val CANARY_MESSAGE = "canary".toByteArray()

        /** A P-256 key as SubjectPublicKeyInfo. */
        private const val SPKI_LENGTH = 91

        /** The name of a key's canary, a test key of the same kind. No app id gives a key of such a name. */
        fun canary(alias: String): String = "synheart_canary_" + sha256(alias.toByteArray()).copyOf(8).hex()
    }
}
