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

/** Gets Play Integrity tokens. */
internal interface IntegrityTokens {
    /** Starts slow preparations. Does not wait for them. */
    fun warmUp() {}

    /** A token over this nonce (classic) or request hash (standard). */
    suspend fun token(nonce: String): String
}

/** Classic requests: each asks Google, and the service can decode the tokens with its own keys. */
internal class ClassicIntegrity(private val context: Context, private val cloudProjectNumber: Long?) : IntegrityTokens {
    override suspend fun token(nonce: String): String {
        if (nonce.length !in NONCE_LENGTHS) throw AttestationException(Code.REFUSED, "the nonce has ${nonce.length} characters")
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

    private companion object {
        val NONCE_LENGTHS = 16..500
    }
}

/**
 * Standard requests: a token provider is prepared once, and then gives tokens fast. Google lets an app prepare five a minute, and
 * a provider can become invalid after hours.
 *
 * All callers wait for one task. A task that takes more than a minute (Google's advice) is replaced by a new one.
 *
 * @param elapsedMillis a clock that does not jump
 */
internal class StandardIntegrity(
    private val context: Context, private val cloudProjectNumber: Long, private val elapsedMillis: () -> Long,
) : IntegrityTokens {
    private class Preparation(val task: Task<StandardIntegrityTokenProvider>, val startedAtMillis: Long)

    // Guarded by this object's monitor.
    private var latest: Preparation? = null

    override fun warmUp() {
        preparation()
    }

    override suspend fun token(nonce: String): String {
        // Google refuses 500 bytes and more.
        if (nonce.toByteArray().size >= MAXIMUM_HASH) throw AttestationException(Code.REFUSED, "the request hash is too long")
        val request = StandardIntegrityTokenRequest.builder().setRequestHash(nonce).build()
        val first = preparation()
        return try {
            provider(first).request(request).await().token()
        } catch (error: StandardIntegrityException) {
            if (error.errorCode != StandardIntegrityErrorCode.INTEGRITY_TOKEN_PROVIDER_INVALID) throw failure(error)
            forget(first)
            try { provider(preparation()).request(request).await().token() } catch (again: StandardIntegrityException) { throw failure(again) }
        }
    }

    /** The task that prepares a provider: the latest one, unless it failed or hangs. */
    @Synchronized
    private fun preparation(): Preparation {
        latest?.let {
            val isUsable = if (it.task.isComplete) it.task.isSuccessful else elapsedMillis() - it.startedAtMillis < MAXIMUM_PREPARATION_MILLIS
            if (isUsable) return it
        }
        val request = PrepareIntegrityTokenRequest.builder().setCloudProjectNumber(cloudProjectNumber).build()
        return Preparation(IntegrityManagerFactory.createStandard(context).prepareIntegrityToken(request), elapsedMillis()).also { latest = it }
    }

    private suspend fun provider(preparation: Preparation): StandardIntegrityTokenProvider = try {
        preparation.task.await()
    } catch (error: StandardIntegrityException) {
        throw failure(error)
    }

    @Synchronized
    private fun forget(invalid: Preparation) {
        if (latest === invalid) latest = null
    }

    private fun failure(error: StandardIntegrityException) =
        AttestationException(meaning(error.errorCode), "Play Integrity: ${error.errorCode}", error)

    private fun meaning(code: Int): Code = when (code) {
        StandardIntegrityErrorCode.REQUEST_HASH_TOO_LONG -> Code.REFUSED
        StandardIntegrityErrorCode.CLIENT_TRANSIENT_ERROR,
        // The provider was invalid twice in a row. The next operation prepares another one.
        StandardIntegrityErrorCode.INTEGRITY_TOKEN_PROVIDER_INVALID,
        -> Code.UNAVAILABLE
        else -> commonMeaning(code)
    }

    private companion object {
        const val MAXIMUM_HASH = 500
        const val MAXIMUM_PREPARATION_MILLIS = 60_000L
    }
}

/**
 * The meaning of an error code that both kinds of requests share.
 *
 * @see <a href="https://developer.android.com/google/play/integrity/error-codes">Handle Play Integrity API error codes</a>
 */
private fun commonMeaning(code: Int): Code = when (code) {
    // The errors for which Google advises a retry after 5, 10 and 20 s. Google reports a used-up daily quota as TOO_MANY_REQUESTS too.
    IntegrityErrorCode.NETWORK_ERROR, IntegrityErrorCode.TOO_MANY_REQUESTS, IntegrityErrorCode.GOOGLE_SERVER_UNAVAILABLE,
    IntegrityErrorCode.INTERNAL_ERROR,
    -> Code.UNAVAILABLE
    // The device lacks a part of Google Play, or an account. `PlayRemedy` says what its user can do.
    IntegrityErrorCode.PLAY_STORE_NOT_FOUND, IntegrityErrorCode.PLAY_STORE_ACCOUNT_NOT_FOUND, IntegrityErrorCode.PLAY_SERVICES_NOT_FOUND,
    IntegrityErrorCode.CANNOT_BIND_TO_SERVICE, IntegrityErrorCode.PLAY_STORE_VERSION_OUTDATED,
    IntegrityErrorCode.PLAY_SERVICES_VERSION_OUTDATED,
    -> Code.UNSUPPORTED
    // The API is not enabled in Play Console, or the Play Store is old. This is not UNSUPPORTED: a developer's mistake
    // must not make the client send the key attestation alone.
    IntegrityErrorCode.API_NOT_AVAILABLE, IntegrityErrorCode.CLOUD_PROJECT_NUMBER_IS_INVALID -> Code.MISCONFIGURED
    // APP_NOT_INSTALLED and APP_UID_MISMATCH: something poses as the app.
    else -> Code.REFUSED
}

/** Waits for a task. A cancelled caller stops waiting; Google's task continues for other callers. */
private suspend fun <Result> Task<Result>.await(): Result = suspendCancellableCoroutine { continuation ->
    addOnCompleteListener({ it.run() }) { task ->
        // Reading the result of a task that failed or was cancelled throws, so ask for its exception first.
        val failure = task.exception
        when {
            task.isSuccessful -> continuation.resume(task.result)
            failure != null -> continuation.resumeWithException(failure)
            else -> continuation.resumeWithException(AttestationException(Code.UNAVAILABLE, "Google cancelled the task"))
        }
    }
}
