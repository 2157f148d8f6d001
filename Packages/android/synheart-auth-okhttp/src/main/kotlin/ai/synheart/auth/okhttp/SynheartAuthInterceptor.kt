package ai.synheart.auth.okhttp

import ai.synheart.auth.HttpAnswer
import ai.synheart.auth.HttpRequest
import ai.synheart.auth.HttpTransport
import ai.synheart.auth.SignatureScheme
import ai.synheart.auth.SynheartAuth
import ai.synheart.auth.SynheartAuthException
import ai.synheart.auth.TransportException
import java.io.IOException
import java.io.InterruptedIOException
import kotlin.time.Duration
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withContext
import okhttp3.Headers
import okhttp3.Interceptor
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.RequestBody.Companion.toRequestBody
import okhttp3.Response
import okio.Buffer

/** Why a request was not signed or not accepted. OkHttp passes on nothing but `IOException`. */
public class SynheartAuthIOException(
    /** The client's error. */
    public val error: SynheartAuthException,
) : IOException(error.toString(), error)

/**
 * Has the client sign its requests, and recover from refusals as `SynheartAuth.send` does. Add it after the app's own interceptors:
 *
 * ```
 * OkHttpClient.Builder().addSynheartAuth(SynheartAuth.shared, "com.example.app").build()
 * ```
 *
 * Every request must go to the auth service or to one of `Configuration.origins`. Its body is held in memory; the answer's is not.
 * A redirect is the answer: a signature is for one URL, and OkHttp would take it along to another one. So a client that is told to
 * follow redirects afterwards throws an `IOException` instead.
 *
 * @param deadline the limit of a call, recoveries included, until the head of the answer
 */
public fun OkHttpClient.Builder.addSynheartAuth(
    auth: SynheartAuth, appId: String, scheme: SignatureScheme? = null, deadline: Duration = 30.seconds,
): OkHttpClient.Builder = followRedirects(false).followSslRedirects(false)
    .addInterceptor(SynheartAuthInterceptor(auth, appId, scheme, deadline)).addNetworkInterceptor(RedirectGuard)

/** Signs a request and sends it. */
internal class SynheartAuthInterceptor(
    private val auth: SynheartAuth, private val appId: String, private val scheme: SignatureScheme?, private val deadline: Duration,
) : Interceptor {
    override fun intercept(chain: Interceptor.Chain): Response {
        val request = chain.request()
        val exchange = Exchange(chain, request)
        try {
            val signed = HttpRequest(request.method, request.url.toString(), request.headers.toList(), exchange.bytes, deadline)
            runBlocking { auth.send(appId, signed, scheme, exchange) }
            return exchange.take() ?: throw IOException("no answer")
        } catch (error: SynheartAuthException) {
            exchange.close()
            throw exchange.failure ?: SynheartAuthIOException(error)
        } catch (error: InterruptedException) {
            exchange.close()
            Thread.currentThread().interrupt()
            throw InterruptedIOException("interrupted")
        } catch (error: Throwable) {
            exchange.close()
            throw error
        }
    }

    /** Sends each copy of a request through the rest of the chain, and keeps the latest answer. */
    private class Exchange(private val chain: Interceptor.Chain, private val original: Request) : HttpTransport {
        val bytes: ByteArray = original.body?.let { body -> Buffer().also(body::writeTo).readByteArray() } ?: ByteArray(0)
        private var latest: Response? = null
        private var isClosed = false

        /** OkHttp's own error, if the latest copy got no answer. */
        var failure: IOException? = null
            private set

        override suspend fun send(request: HttpRequest): HttpAnswer = withContext(Dispatchers.IO) {
            val builder = original.newBuilder().headers(headers(request.headers))
                .method(request.method, original.body?.let { bytes.toRequestBody(it.contentType()) })
                .tag(SignedUrl::class.java, SignedUrl(request.url))
            val response = try {
                replace(null, failure = null)
                chain.proceed(builder.build())
            } catch (error: IOException) {
                replace(null, error)
                throw TransportException("no answer", cause = error)
            }
            replace(response, failure = null)
            // Only a refusal is read. Its body stays for the app.
            val body = if (response.code in 400..499) response.peekBody(MAXIMUM_REFUSAL).bytes() else ByteArray(0)
            HttpAnswer(response.code, response.headers.toList(), body)
        }

        @Synchronized
        private fun replace(response: Response?, failure: IOException?) {
            latest?.close()
            latest = response
            this.failure = failure
            // The call has ended without this answer.
            if (isClosed) response?.close()
        }

        @Synchronized
        fun take(): Response? = latest.also { latest = null }

        @Synchronized
        fun close() {
            isClosed = true
            latest?.close()
        }
    }

    private companion object {
        const val MAXIMUM_REFUSAL = 64L * 1024

        fun Headers.toList(): List<Pair<String, String>> = List(size) { name(it) to value(it) }

        fun headers(lines: List<Pair<String, String>>): Headers =
            Headers.Builder().apply { for ((name, value) in lines) add(name, value) }.build()
    }
}

/** The URL that a request was signed for. */
internal class SignedUrl(val text: String)

/** Stops a signature on its way to another URL than it is for. */
internal object RedirectGuard : Interceptor {
    override fun intercept(chain: Interceptor.Chain): Response {
        val request = chain.request()
        val signed = request.tag(SignedUrl::class.java)
        if (signed != null && signed.text != request.url.toString()) throw IOException("a signed request follows no redirect")
        return chain.proceed(request)
    }
}
