package ai.synheart.auth

import android.content.Context
import android.security.keystore.KeyGenParameterSpec
import android.security.keystore.KeyPermanentlyInvalidatedException
import android.security.keystore.KeyProperties
import android.security.keystore.StrongBoxUnavailableException
import android.util.Base64
import ai.synheart.auth.SynheartAuth.HostFailure
import com.google.android.gms.tasks.Tasks
import com.google.android.play.core.integrity.IntegrityManagerFactory
import com.google.android.play.core.integrity.IntegrityServiceException
import com.google.android.play.core.integrity.IntegrityTokenRequest
import com.google.android.play.core.integrity.model.IntegrityErrorCode
import java.security.KeyPairGenerator
import java.security.KeyStore
import java.security.PrivateKey
import java.security.Signature
import java.security.UnrecoverableKeyException
import java.security.spec.ECGenParameterSpec
import java.util.concurrent.ExecutionException
import java.util.concurrent.TimeUnit
import org.json.JSONArray
import org.json.JSONObject

/**
 * Keys in the Android Keystore, with Play Integrity and the hardware's key attestation as proof:
 *
 *     val auth = SynheartAuth("https://auth.example.com", context.noBackupFilesDir.path, KeystoreHost(context))
 */
class KeystoreHost(private val context: Context) : SynheartAuth.Host {
    private val store = KeyStore.getInstance("AndroidKeyStore").apply { load(null) }

    /** The challenge is fixed before the key exists: the hardware puts it into the key's attestation. */
    override fun createKey(alias: String, challenge: ByteArray): ByteArray = guarded {
        try { generate(alias, challenge, strongBox = true) } catch (_: StrongBoxUnavailableException) { generate(alias, challenge, strongBox = false) }
    }

    override fun loadKey(alias: String): ByteArray? = guarded { store.getCertificate(alias)?.publicKey?.encoded }

    override fun sign(alias: String, message: ByteArray): ByteArray? = guarded {
        val key = store.getKey(alias, null) as? PrivateKey ?: return@guarded null
        Signature.getInstance("SHA256withECDSA").run { initSign(key); update(message); sign() }
    }

    override fun deleteKey(alias: String) = guarded { store.deleteEntry(alias) }

    /** A classic request: its nonce is the binding nonce. The certificate chain, leaf first, goes with it. */
    override fun attest(alias: String, challenge: ByteArray, nonce: ByteArray): ByteArray {
        val text = Base64.encodeToString(nonce, Base64.URL_SAFE or Base64.NO_PADDING or Base64.NO_WRAP)
        val request = IntegrityTokenRequest.builder().setNonce(text).build()
        val token = try {
            Tasks.await(IntegrityManagerFactory.create(context).requestIntegrityToken(request), 25, TimeUnit.SECONDS).token()
        } catch (error: ExecutionException) {
            throw HostFailure(meaning((error.cause as? IntegrityServiceException)?.errorCode), error)
        } catch (error: Exception) {
            throw HostFailure(HostFailure.HOST_UNAVAILABLE, error)
        }
        val chain = guarded { store.getCertificateChain(alias).orEmpty().map { Base64.encodeToString(it.encoded, Base64.NO_WRAP) } }
        return JSONObject().put("proof", token).put("key_attestation", JSONArray(chain)).toString().toByteArray()
    }

    /** Tells failures that a retry may mend from those that are permanent on this device. */
    private fun meaning(code: Int?): Int = when (code) {
        IntegrityErrorCode.NETWORK_ERROR, IntegrityErrorCode.TOO_MANY_REQUESTS, IntegrityErrorCode.GOOGLE_SERVER_UNAVAILABLE,
        IntegrityErrorCode.CLIENT_TRANSIENT_ERROR, IntegrityErrorCode.INTERNAL_ERROR, null -> HostFailure.HOST_UNAVAILABLE
        IntegrityErrorCode.API_NOT_AVAILABLE, IntegrityErrorCode.PLAY_STORE_NOT_FOUND,
        IntegrityErrorCode.PLAY_SERVICES_NOT_FOUND -> HostFailure.HOST_UNSUPPORTED
        else -> HostFailure.HOST_REFUSED
    }

    private fun generate(alias: String, challenge: ByteArray, strongBox: Boolean): ByteArray {
        val spec = KeyGenParameterSpec.Builder(alias, KeyProperties.PURPOSE_SIGN)
            .setAlgorithmParameterSpec(ECGenParameterSpec("secp256r1"))
            .setDigests(KeyProperties.DIGEST_SHA256)
            .setAttestationChallenge(challenge.takeIf { it.isNotEmpty() })
            .setIsStrongBoxBacked(strongBox)
            .build()
        return KeyPairGenerator.getInstance(KeyProperties.KEY_ALGORITHM_EC, "AndroidKeyStore").run { initialize(spec); generateKeyPair().public.encoded }
    }

    private fun <T> guarded(body: () -> T): T =
        try { body() } catch (error: KeyPermanentlyInvalidatedException) { throw HostFailure(HostFailure.HOST_INVALIDATED, error) }
        catch (error: UnrecoverableKeyException) { throw HostFailure(HostFailure.HOST_INVALIDATED, error) }
        catch (error: Exception) { throw HostFailure(HostFailure.HOST_FAILED, error) }
}
