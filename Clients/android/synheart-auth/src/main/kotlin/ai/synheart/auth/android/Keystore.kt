package ai.synheart.auth.android

import ai.synheart.auth.DeviceKeyStoreException
import ai.synheart.auth.DeviceKeyStoreException.Code
import java.security.Key
import java.security.KeyStore
import java.security.cert.X509Certificate

/**
 * The calls of the Android Keystore. Its answers do not prove that a key is lost: since Android 12 look-ups report every failure
 * of the daemon as "not found", and in earlier versions `getKey` finds no key while the daemon restarts.
 *
 * @param prefix the beginning of each name, so that two storages of one app do not share keys
 * @param pause waits between two attempts at busy hardware. The client calls the Keystore on a thread of its own
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

    /** A key; null if the Keystore does not find it. */
    fun key(alias: String): Key? = guarded { store.getKey(name(alias), null) }

    /** The certificates of a key, leaf first; empty if the Keystore does not give them. */
    fun chain(alias: String): List<X509Certificate> =
        guarded { store.getCertificateChain(name(alias))?.filterIsInstance<X509Certificate>().orEmpty() }

    /** Deletes a key. Succeeds if there is none. */
    fun delete(alias: String): Unit = guarded { store.deleteEntry(name(alias)) }

    /** Runs something that uses the Keystore. Its failures are [DeviceKeyStoreException]s. */
    fun <Value> guarded(body: () -> Value): Value = try {
        body()
    } catch (error: DeviceKeyStoreException) {
        throw error
    } catch (error: Exception) {
        throw KeystoreFault.exception(error)
    }

    companion object {
        const val PROVIDER = "AndroidKeyStore"
        private const val PAUSE_MILLIS = 200L
        val PAUSE: () -> Unit = { Thread.sleep(PAUSE_MILLIS) }
    }
}
