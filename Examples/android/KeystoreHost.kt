package ai.synheart.auth

import android.security.keystore.KeyGenParameterSpec
import android.security.keystore.KeyPermanentlyInvalidatedException
import android.security.keystore.KeyProperties
import android.security.keystore.StrongBoxUnavailableException
import java.security.KeyPairGenerator
import java.security.KeyStore
import java.security.PrivateKey
import java.security.Signature
import java.security.UnrecoverableKeyException
import java.security.spec.ECGenParameterSpec

/** What synheart_auth_host's key callbacks do on Android; the JNI glue turns a [Failure] into its status. */
object KeystoreHost {
    class Failure(val status: Int, cause: Throwable) : Exception(cause)

    private const val INVALIDATED = 2
    private const val FAILED = 6
    private val store = KeyStore.getInstance("AndroidKeyStore").apply { load(null) }

    /** The challenge is fixed before the key exists: the hardware puts it into the key's attestation. */
    fun createKey(alias: String, challenge: ByteArray): ByteArray = guarded {
        try { generate(alias, challenge, strongBox = true) } catch (_: StrongBoxUnavailableException) { generate(alias, challenge, strongBox = false) }
    }

    fun loadKey(alias: String): ByteArray? = guarded { store.getCertificate(alias)?.publicKey?.encoded }

    fun sign(alias: String, message: ByteArray): ByteArray? = guarded {
        val key = store.getKey(alias, null) as? PrivateKey ?: return@guarded null
        Signature.getInstance("SHA256withECDSA").run { initSign(key); update(message); sign() }
    }

    fun deleteKey(alias: String) = guarded { store.deleteEntry(alias) }

    /** Leaf first, for `key_attestation`. */
    fun certificateChain(alias: String): List<ByteArray> = store.getCertificateChain(alias).orEmpty().map { it.encoded }

    private fun generate(alias: String, challenge: ByteArray, strongBox: Boolean): ByteArray {
        val spec = KeyGenParameterSpec.Builder(alias, KeyProperties.PURPOSE_SIGN)
            .setAlgorithmParameterSpec(ECGenParameterSpec("secp256r1"))
            .setDigests(KeyProperties.DIGEST_SHA256)
            .setAttestationChallenge(challenge)
            .setIsStrongBoxBacked(strongBox)
            .build()
        return KeyPairGenerator.getInstance(KeyProperties.KEY_ALGORITHM_EC, "AndroidKeyStore").run { initialize(spec); generateKeyPair().public.encoded }
    }

    private fun <T> guarded(body: () -> T): T =
        try { body() } catch (error: KeyPermanentlyInvalidatedException) { throw Failure(INVALIDATED, error) }
        catch (error: UnrecoverableKeyException) { throw Failure(INVALIDATED, error) }
        catch (error: StrongBoxUnavailableException) { throw error }
        catch (error: Exception) { throw Failure(FAILED, error) }
}
