package ai.synheart.auth.android

import ai.synheart.auth.AttestationException
import ai.synheart.auth.AttestationException.Code
import android.content.Context
import com.google.android.gms.tasks.Task
import com.google.android.play.core.integrity.IntegrityManagerFactory
import com.google.android.play.core.integrity.IntegrityServiceException
import com.google.android.play.core.integrity.IntegrityTokenRequest
import com.google.android.play.core.integrity.StandardIntegrityException
import com.google.android.play.core.integrity.StandardIntegrityManager.PrepareIntegrityTokenRequest
import com.google.android.play.core.integrity.StandardIntegrityManager.StandardIntegrityTokenProvider
import com.google.android.play.core.integrity.StandardIntegrityManager.StandardIntegrityTokenRequest
import com.google.android.play.core.integrity.model.IntegrityErrorCode
import com.google.android.play.core.integrity.model.StandardIntegrityErrorCode
import kotlin.coroutines.resume
import kotlin.coroutines.resumeWithException
import kotlinx.coroutines.suspendCancellableCoroutine
import kotlinx.coroutines.sync.Mutex
import kotlinx.coroutines.sync.withLock

/** Gets Play Integrity tokens. */
internal fun interface IntegrityTokens {
    /** A token over this nonce (classic) or request hash (standard). */
    suspend fun token(nonce: String): String
}

/** Classic requests: each asks Google, and the service can open the tokens with its own keys. */
internal class ClassicIntegrity(private val context: Context, private val cloudProjectNumber: Long?) : IntegrityTokens {
    override suspend fun token(nonce: String): String {
        val request = IntegrityTokenRequest.builder().setNonce(nonce)
        if (cloudProjectNumber != null) request.setCloudProjectNumber(cloudProjectNumber)
        return try {
            IntegrityManagerFactory.create(context).requestIntegrityToken(request.build()).await().token()
        } catch (error: IntegrityServiceException) {
            throw AttestationException(meaning(error.errorCode), "Play Integrity: ${error.errorCode}", error)
        }
    }

    private fun meaning(code: Int): Code = when (code) {
        IntegrityErrorCode.NONCE_TOO_SHORT, IntegrityErrorCode.NONCE_TOO_LONG, IntegrityErrorCode.NONCE_IS_NOT_BASE64 -> Code.REFUSED
        IntegrityErrorCode.CLIENT_TRANSIENT_ERROR -> Code.UNAVAILABLE
        else -> commonMeaning(code)
    }
}

/**
 * Standard requests: a token provider is prepared once, and then gives tokens fast. Google lets an app prepare five a minute, and
 * a provider can become invalid after hours.
 */
internal class StandardIntegrity(private val context: Context, private val cloudProjectNumber: Long) : IntegrityTokens {
    private val mutex = Mutex()
    private var provider: StandardIntegrityTokenProvider? = null

    override suspend fun token(nonce: String): String {
        val request = StandardIntegrityTokenRequest.builder().setRequestHash(nonce).build()
        val first = provider()
        return try {
            first.request(request).await().token()
        } catch (error: StandardIntegrityException) {
            if (error.errorCode != StandardIntegrityErrorCode.INTEGRITY_TOKEN_PROVIDER_INVALID) throw failure(error)
            forget(first)
            try { provider().request(request).await().token() } catch (again: StandardIntegrityException) { throw failure(again) }
        }
    }

    private suspend fun provider(): StandardIntegrityTokenProvider = mutex.withLock {
        provider ?: try {
            val request = PrepareIntegrityTokenRequest.builder().setCloudProjectNumber(cloudProjectNumber).build()
            IntegrityManagerFactory.createStandard(context).prepareIntegrityToken(request).await().also { provider = it }
        } catch (error: StandardIntegrityException) {
            throw failure(error)
        }
    }

    private suspend fun forget(invalid: StandardIntegrityTokenProvider): Unit = mutex.withLock {
        if (provider === invalid) provider = null
    }

    private fun failure(error: StandardIntegrityException) =
        AttestationException(meaning(error.errorCode), "Play Integrity: ${error.errorCode}", error)

    private fun meaning(code: Int): Code = when (code) {
        StandardIntegrityErrorCode.REQUEST_HASH_TOO_LONG -> Code.REFUSED
        StandardIntegrityErrorCode.CLIENT_TRANSIENT_ERROR,
        // Twice in a row: the next operation prepares another one.
        StandardIntegrityErrorCode.INTEGRITY_TOKEN_PROVIDER_INVALID,
        -> Code.UNAVAILABLE
        else -> commonMeaning(code)
    }
}

/**
 * The codes that both kinds of requests share.
 *
 * @see <a href="https://developer.android.com/google/play/integrity/error-codes">Handle Play Integrity API error codes</a>
 */
private fun commonMeaning(code: Int): Code = when (code) {
    IntegrityErrorCode.NETWORK_ERROR, IntegrityErrorCode.TOO_MANY_REQUESTS, IntegrityErrorCode.GOOGLE_SERVER_UNAVAILABLE,
    IntegrityErrorCode.CANNOT_BIND_TO_SERVICE, IntegrityErrorCode.INTERNAL_ERROR,
    -> Code.UNAVAILABLE
    IntegrityErrorCode.API_NOT_AVAILABLE, IntegrityErrorCode.PLAY_STORE_NOT_FOUND, IntegrityErrorCode.PLAY_STORE_ACCOUNT_NOT_FOUND,
    IntegrityErrorCode.PLAY_SERVICES_NOT_FOUND, IntegrityErrorCode.PLAY_STORE_VERSION_OUTDATED,
    IntegrityErrorCode.PLAY_SERVICES_VERSION_OUTDATED,
    -> Code.UNSUPPORTED
    IntegrityErrorCode.CLOUD_PROJECT_NUMBER_IS_INVALID -> Code.MISCONFIGURED
    // APP_NOT_INSTALLED and APP_UID_MISMATCH: something poses as the app.
    else -> Code.REFUSED
}

/** Waits for a task. A cancelled caller stops waiting; Google's task runs on. */
private suspend fun <Result> Task<Result>.await(): Result = suspendCancellableCoroutine { continuation ->
    addOnCompleteListener({ it.run() }) { task ->
        if (task.isSuccessful) {
            continuation.resume(task.result)
        } else {
            continuation.resumeWithException(task.exception ?: AttestationException(Code.UNAVAILABLE, "Google cancelled the task"))
        }
    }
}
