package ai.synheart.auth.android

import ai.synheart.auth.DeviceKeyStoreException
import ai.synheart.auth.DeviceKeyStoreException.Code
import android.security.keystore.KeyGenParameterSpec
import android.security.keystore.KeyProperties
import java.security.GeneralSecurityException
import java.security.Key
import java.security.KeyStore
import java.security.cert.X509Certificate
import javax.crypto.Cipher
import javax.crypto.KeyGenerator
import javax.crypto.SecretKey

/**
 * The Android Keystore, made certain: it says that a key is absent or lost only if another key, the canary, works, and a second
 * look after a pause finds the same.
 *
 * Android's own look-ups do not tell: since version 12 `containsAlias` and `getCertificate` answer "not there" to every failure of
 * the daemon, and before, `getKey` does so while the daemon restarts.
 *
 * @param prefix stands before each alias, so that two storages of one app do not share keys
 * @param pause waits between two looks
 */
internal class Keystore(private val prefix: String = "", val pause: () -> Unit = PAUSE) {
    private val store: KeyStore by lazy {
        try {
            KeyStore.getInstance(PROVIDER).apply { load(null) }
        } catch (error: java.security.KeyStoreException) {
            throw DeviceKeyStoreException(Code.UNSUPPORTED, "this system has no Android Keystore", error)
        }
    }

    /** The name of a key in Android's Keystore. */
    fun name(alias: String): String = prefix + alias

    /** A key; null only if it certainly does not exist. */
    fun find(alias: String): Key? = certain { key(alias) }

    /** The certificates of a key that exists, leaf first. They can be unavailable, but not absent. */
    fun chain(alias: String): List<X509Certificate> = guarded {
        val chain = store.getCertificateChain(name(alias))?.filterIsInstance<X509Certificate>().orEmpty()
        if (chain.isEmpty()) throw DeviceKeyStoreException(Code.UNAVAILABLE, "the Keystore does not give the certificates")
        chain
    }

    /** Deletes a key. Succeeds if there is none. */
    fun delete(alias: String): Unit = guarded { store.deleteEntry(name(alias)) }

    /** The AES key of this name, made if it certainly does not exist. The caller holds a lock against other processes. */
    fun secretKey(alias: String): SecretKey = (find(alias) ?: makeSecretKey(alias)) as? SecretKey
        ?: throw DeviceKeyStoreException(Code.FAILED, "not a secret key")

    /**
     * The AES key of this name, replaced if it is certainly lost: what it had encrypted can never be read again. The caller holds a
     * lock against other processes, so that only one replaces it.
     */
    fun workingSecretKey(alias: String): SecretKey = try {
        secretKey(alias).also { key -> using { encryptOneByte(key) } }
    } catch (error: DeviceKeyStoreException) {
        if (!error.isKeyLost) throw error
        makeSecretKey(alias)
    }

    /**
     * Runs something that uses a key. A key that seems lost must seem so twice, while the canary works.
     *
     * @throws DeviceKeyStoreException `INVALIDATED` for a key that is certainly lost, `UNAVAILABLE` while the Keystore is locked or
     *   busy, `FAILED` otherwise
     */
    fun <Value : Any> using(body: () -> Value): Value =
        certain(body) ?: throw DeviceKeyStoreException(Code.FAILED, "no result")

    private fun <Value : Any> certain(look: () -> Value?): Value? {
        val first = attempt(look)
        if (first is Outcome.Found) return first.value
        if (!isCanaryAlive()) throw unavailable("the Keystore does not work", first.error)
        pause()
        return when (val second = attempt(look)) {
            is Outcome.Found -> second.value
            is Outcome.Absent -> if (first is Outcome.Absent) null else throw unavailable("the Keystore contradicts itself", first.error)
            is Outcome.Lost -> throw DeviceKeyStoreException(Code.INVALIDATED, "the key is lost", second.error)
        }
    }

    private sealed class Outcome<out Value>(val error: Throwable?) {
        class Found<Value>(val value: Value) : Outcome<Value>(null)
        object Absent : Outcome<Nothing>(null)
        class Lost(error: Throwable) : Outcome<Nothing>(error)
    }

    private fun <Value : Any> attempt(look: () -> Value?): Outcome<Value> {
        try {
            return look()?.let { Outcome.Found(it) } ?: Outcome.Absent
        } catch (error: DeviceKeyStoreException) {
            throw error
        } catch (error: Exception) {
            when (KeystoreFault.of(error)) {
                KeystoreFault.LOST, KeystoreFault.UNUSABLE -> return Outcome.Lost(error)
                KeystoreFault.BUSY, KeystoreFault.OPERATION_DROPPED -> throw unavailable("the Keystore is locked or busy", error)
                KeystoreFault.IMPOSSIBLE, KeystoreFault.OTHER -> throw DeviceKeyStoreException(Code.FAILED, "the Keystore failed", error)
            }
        }
    }

    /** One look. */
    private fun key(alias: String): Key? {
        store.getKey(name(alias), null)?.let { return it }
        if (store.containsAlias(name(alias))) throw unavailable("the Keystore has the key and does not give it", null)
        return null
    }

    /** Whether a key of our own can be found, or made, and used. One that is lost is made again: it holds nothing. */
    private fun isCanaryAlive(): Boolean = try {
        canWork(store.getKey(CANARY, null) ?: makeCanary())
    } catch (error: GeneralSecurityException) {
        isLost(error) && isNewCanaryAlive()
    } catch (error: RuntimeException) {
        isLost(error) && isNewCanaryAlive()
    }

    private fun isNewCanaryAlive(): Boolean = try {
        canWork(makeCanary())
    } catch (_: GeneralSecurityException) {
        false
    } catch (_: RuntimeException) {
        false
    }

    private fun isLost(error: Exception): Boolean =
        KeystoreFault.of(error).let { it == KeystoreFault.LOST || it == KeystoreFault.UNUSABLE }

    /** Makes the canary, and looks it up as any other key. */
    private fun makeCanary(): Key? {
        makeSecretKey(CANARY)
        return store.getKey(CANARY, null)
    }

    private fun canWork(canary: Key?): Boolean = canary != null && encryptOneByte(canary).isNotEmpty()

    private fun encryptOneByte(key: Key): ByteArray = Cipher.getInstance(TRANSFORMATION).run {
        init(Cipher.ENCRYPT_MODE, key)
        doFinal(ByteArray(1))
    }

    /** Makes an AES key, and replaces one of the same name. */
    private fun makeSecretKey(alias: String): SecretKey = guarded {
        val spec = KeyGenParameterSpec.Builder(
            if (alias == CANARY) alias else name(alias), KeyProperties.PURPOSE_ENCRYPT or KeyProperties.PURPOSE_DECRYPT,
        )
            .setBlockModes(KeyProperties.BLOCK_MODE_GCM)
            .setEncryptionPaddings(KeyProperties.ENCRYPTION_PADDING_NONE)
            .setKeySize(AES_BITS)
            .build()
        KeyGenerator.getInstance(KeyProperties.KEY_ALGORITHM_AES, PROVIDER).run {
            init(spec)
            generateKey()
        }
    }

    private fun <Value> guarded(body: () -> Value): Value = try {
        body()
    } catch (error: DeviceKeyStoreException) {
        throw error
    } catch (error: Exception) {
        throw failure(error)
    }

    companion object {
        const val PROVIDER = "AndroidKeyStore"
        const val TRANSFORMATION = "AES/GCM/NoPadding"
        private const val CANARY = "synheart_auth_canary"
        private const val AES_BITS = 256
        private const val PAUSE_MILLIS = 200L

        /** The pause between two looks. The client calls the Keystore on a background thread. */
        val PAUSE: () -> Unit = { Thread.sleep(PAUSE_MILLIS) }

        /** The error for a failure that says nothing about whether a key exists. */
        fun failure(error: Exception): DeviceKeyStoreException = when (KeystoreFault.of(error)) {
            KeystoreFault.BUSY, KeystoreFault.OPERATION_DROPPED -> unavailable("the Keystore is locked or busy", error)
            KeystoreFault.LOST, KeystoreFault.UNUSABLE, KeystoreFault.IMPOSSIBLE, KeystoreFault.OTHER ->
                DeviceKeyStoreException(Code.FAILED, "the Keystore failed", error)
        }

        private fun unavailable(message: String, cause: Throwable?) = DeviceKeyStoreException(Code.UNAVAILABLE, message, cause)
    }
}
