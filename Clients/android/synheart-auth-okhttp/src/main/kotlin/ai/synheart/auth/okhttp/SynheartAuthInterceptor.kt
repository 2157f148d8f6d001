package ai.synheart.auth.okhttp

import ai.synheart.auth.HttpResponse
import ai.synheart.auth.HttpRequest
import ai.synheart.auth.HttpTransport
import ai.synheart.auth.SignatureScheme
import ai.synheart.auth.StreamedBody
import ai.synheart.auth.SynheartAuth
import ai.synheart.auth.SynheartAuthException
import ai.synheart.auth.TransportException
import java.io.IOException
import java.io.InterruptedIOException
import java.net.ProtocolException
import kotlin.coroutines.ContinuationInterceptor
import kotlin.coroutines.CoroutineContext
import kotlin.time.Duration
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.coroutineScope
import kotlinx.coroutines.currentCoroutineContext
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withContext
import okhttp3.Authenticator
import okhttp3.Headers
import okhttp3.Interceptor
import okhttp3.MediaType
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.RequestBody
import okhttp3.Response
import okhttp3.Route
import okio.Buffer
import okio.BufferedSink
import okio.buffer
import okio.sink

/** The client's error about a request that was not signed or not accepted. OkHttp passes on nothing but `IOException`. */
public class SynheartAuthIOException(
    /** The client's error. */
    public val error: SynheartAuthException,
) : IOException(error.toString(), error)

/**
 * Lets the client sign the requests of an OkHttp client, and recover from refusals as `SynheartAuth.send` does.
 * Add it after the app's own interceptors and its `Authenticator`:
 *
 * ```
 * OkHttpClient.Builder().addSynheartAuth(SynheartAuth.shared, "com.example.app").build()
 * ```
 *
 * Every request must go to the auth service or to one of `Configuration.origins`. An answer's body is streamed. A
 * request's body is held in memory, unless [scheme] is [SignatureScheme.TWO] and the body is not one-shot. Such a
 * body is streamed: it is written twice, the first time for its digest. A duplex body is refused, because OkHttp
 * writes such a body while it reads the answer, but the SDK must read the whole body before it signs the request.
 *
 * A signed request is sent once. Where OkHttp would send it again (after a failed connection, a redirect, a 408 or
 * a 503), the call throws an `IOException` or returns the answer. OkHttp never gives a 401 of a signed request to
 * the `Authenticator`: the client recovers from it, or the call returns it. A GET or HEAD that was
 * sent and whose connection then failed is signed and sent once more.
 *
 * @param deadline the limit of a call, recoveries included, until the head of the answer
 */
public fun OkHttpClient.Builder.addSynheartAuth(
    auth: SynheartAuth, appId: String, scheme: SignatureScheme? = null, deadline: Duration = 30.seconds,
): OkHttpClient.Builder = followRedirects(false).followSslRedirects(false)
    // A builder has no getter for its authenticator, but a client has.
    .authenticator(OthersAuthenticator(build().authenticator))
    .addInterceptor(SynheartAuthInterceptor(auth, appId, scheme, deadline)).addNetworkInterceptor(OnceGuard)

/** The app's authenticator, for requests that the client does not sign. */
private class OthersAuthenticator(private val app: Authenticator) : Authenticator {
    override fun authenticate(route: Route?, response: Response): Request? =
        if (response.request.tag(SignedRequest::class.java) != null) null else app.authenticate(route, response)
}

/** Signs a request and sends it. */
internal class SynheartAuthInterceptor(
    private val auth: SynheartAuth, private val appId: String, private val scheme: SignatureScheme?, private val deadline: Duration,
) : Interceptor {
    override fun intercept(chain: Interceptor.Chain): Response {
        val request = chain.request()
        val exchange = Exchange(chain, request)
        try {
            val unsigned = unsigned(request)
            try {
                send(unsigned, exchange)
            } catch (error: SynheartAuthException) {
                val isSafe = request.method == "GET" || request.method == "HEAD"
                if (!isSafe || !exchange.hasLostConnection || chain.call().isCanceled()) throw error
                send(unsigned, exchange)
            }
            return exchange.take() ?: throw IOException("no answer")
        } catch (error: SynheartAuthException) {
            exchange.close()
            // With `SigningFailed`, the client's reason (the body changed, for example) says more than OkHttp's error of the write.
            throw exchange.failure.takeIf { error !is SynheartAuthException.SigningFailed } ?: SynheartAuthIOException(error)
        } catch (error: InterruptedException) {
            exchange.close()
            Thread.currentThread().interrupt()
            throw InterruptedIOException("interrupted")
        } catch (error: Throwable) {
            exchange.close()
            throw error
        }
    }

    private fun unsigned(request: Request): HttpRequest {
        val url = request.url.toString()
        val headers = request.headers.toList()
        val body = request.body ?: return HttpRequest(request.method, url, headers, deadline = deadline)
        if (body.isDuplex()) throw SynheartAuthException.fromCode("SIGNING_FAILED", "a duplex body cannot be signed")
        if (scheme == SignatureScheme.TWO && !body.isOneShot()) {
            val streamed = StreamedBody { output -> output.sink().buffer().also(body::writeTo).flush() }
            return HttpRequest(request.method, url, headers, streamed, deadline)
        }
        return HttpRequest(request.method, url, headers, Buffer().also(body::writeTo).readByteArray(), deadline)
    }

    private fun send(request: HttpRequest, exchange: Exchange) = runBlocking {
        exchange.thread = checkNotNull(currentCoroutineContext()[ContinuationInterceptor])
        auth.send(appId, request, scheme, exchange)
    }

    /** Sends each copy of a request through the rest of the chain, on the thread that OkHttp gave the call, and keeps the latest answer. */
    private class Exchange(private val chain: Interceptor.Chain, private val original: Request) : HttpTransport {
        private var latest: Response? = null
        private var isClosed = false

        /** The thread of the call. */
        @Volatile
        var thread: CoroutineContext = Dispatchers.IO

        /** OkHttp's own error, if the latest copy got no answer. */
        @Volatile
        var failure: IOException? = null
            private set

        /** Whether the connection failed after the latest copy was sent, and before its answer. */
        @Volatile
        var hasLostConnection = false
            private set

        override suspend fun send(request: HttpRequest): HttpResponse = coroutineScope {
            isDone = false
            // The call's thread is blocked until OkHttp returns, so only `cancel` can end the call after the deadline.
            // `Unconfined` runs `cancel` on the thread that cancels this coroutine, because the app's own calls may use up the
            // threads of every dispatcher.
            val watch = launch(Dispatchers.Unconfined) {
                try {
                    awaitCancellation()
                } finally {
                    if (!isDone) chain.call().cancel()
                }
            }
            try {
                withContext(thread) { exchange(request) }
            } finally {
                isDone = true
                watch.cancel()
            }
        }

        @Volatile
        private var isDone = false

        private fun exchange(request: HttpRequest): HttpResponse {
            val signed = SignedRequest(request.url)
            val builder = original.newBuilder().headers(headers(request.headers))
                .method(request.method, original.body?.let { OneShotBody(request, it.contentType()) }).tag(SignedRequest::class.java, signed)
            replace(null, null)
            val response = try {
                chain.proceed(builder.build())
            } catch (error: IOException) {
                throw lost(error, signed)
            } catch (error: InterruptedException) {
                Thread.currentThread().interrupt()
                throw lost(InterruptedIOException("interrupted"), signed)
            }
            replace(response, null)
            // Only a refusal's body is read here. The app can still read it.
            val body = if (response.code in 400..499) response.peekBody(MAXIMUM_REFUSAL).bytes() else ByteArray(0)
            return HttpResponse(response.code, response.headers.toList(), body)
        }

        private fun lost(last: IOException, signed: SignedRequest): TransportException {
            // `last` may be only `OnceGuard`'s refusal of OkHttp's own second attempt. `failure` is the error of the first attempt.
            val error = signed.failure ?: last
            replace(null, error)
            hasLostConnection = signed.isSent && !signed.isAnswered && error !is InterruptedIOException
            return TransportException("no answer", mayHaveArrived = signed.isSent, cause = error)
        }

        @Synchronized
        private fun replace(response: Response?, failure: IOException?) {
            latest?.close()
            latest = response
            this.failure = failure
            hasLostConnection = false
            // The call has ended, so no caller gets this answer.
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

/** A body that OkHttp sends once, whatever fails and whatever the answer is. */
private class OneShotBody(private val request: HttpRequest, private val type: MediaType?) : RequestBody() {
    override fun contentType(): MediaType? = type
    override fun contentLength(): Long = request.bodySize ?: -1
    override fun isOneShot(): Boolean = true
    override fun writeTo(sink: BufferedSink) {
        request.streamedBody?.writeTo(sink.outputStream()) ?: sink.write(request.body)
    }
}

/** One copy of a request: its signed URL, whether it was sent and answered, and the error if it failed. */
internal class SignedRequest(val url: String) {
    @Volatile
    var isSent = false

    @Volatile
    var isAnswered = false

    @Volatile
    var failure: IOException? = null
}

/** Lets a signed request be sent once, and only to the signed URL. OkHttp calls it with a connection for each copy. */
internal object OnceGuard : Interceptor {
    override fun intercept(chain: Interceptor.Chain): Response {
        val request = chain.request()
        val signed = request.tag(SignedRequest::class.java) ?: return chain.proceed(request)
        if (signed.url != request.url.toString()) throw IOException("a signed request follows no redirect")
        // OkHttp does not retry after a `ProtocolException`. It may retry after other errors. After a stream that the server
        // refused, OkHttp would retry until the deadline.
        if (signed.isSent) throw ProtocolException("a signed request is sent once")
        signed.isSent = true
        try {
            return chain.proceed(request).also { signed.isAnswered = true }
        } catch (error: IOException) {
            signed.failure = error
            throw error
        }
    }
}
