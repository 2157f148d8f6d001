package ai.synheart.auth

import java.io.ByteArrayOutputStream
import java.io.InputStream
import java.net.HttpURLConnection
import java.net.URL
import kotlin.coroutines.EmptyCoroutineContext
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.suspendCancellableCoroutine
import kotlinx.coroutines.withTimeoutOrNull

/**
 * A transport over `HttpURLConnection`: no redirects, no cache. Cookies, proxies and TLS are as the process has them.
 *
 * Android's HTTP stack escapes some characters of a URL itself. A signature covers the URL as it is sent, so such a URL is refused.
 */
public class UrlConnectionTransport internal constructor(
    /** Where the exchanges run, which block their threads. */
    private val background: CoroutineDispatcher,
) : HttpTransport {
    /** A transport on the threads of [Dispatchers.IO]. */
    public constructor() : this(Dispatchers.IO)

    override suspend fun send(request: HttpRequest): HttpAnswer {
        val path = request.url.substringBefore('?')
        if (path.any { it in CHANGED_IN_PATH } || request.url.drop(path.length).any { it in CHANGED_IN_QUERY }) {
            throw TransportException("the URL has characters that must be escaped", isUnsendable = true)
        }
        if (request.body.isNotEmpty() && request.method == "GET") {
            // HttpURLConnection would send a POST.
            throw TransportException("a GET with a body cannot be sent", isUnsendable = true)
        }
        val connection = try {
            URL(request.url).openConnection() as HttpURLConnection
        } catch (error: Exception) {
            throw TransportException("not a URL", isUnsendable = true, cause = error)
        }
        return withTimeoutOrNull(request.deadline) { run(connection, request) } ?: throw TransportException("no answer in time")
    }

    /** Makes the exchange on another thread. Closing the connection is what ends it early. */
    private suspend fun run(connection: HttpURLConnection, request: HttpRequest): HttpAnswer =
        suspendCancellableCoroutine { continuation ->
            continuation.invokeOnCancellation { inBackground { connection.disconnect() } }
            inBackground {
                continuation.resumeWith(
                    try {
                        val answer = exchange(connection, request) {
                            if (!continuation.isActive) throw TransportException("the caller has left")
                        }
                        Result.success(answer)
                    } catch (error: TransportException) {
                        Result.failure(error)
                    } catch (error: Exception) {
                        // IOException, and what the platform's stack throws beside it: a missing permission, a bug.
                        Result.failure(TransportException("no answer (${error.javaClass.simpleName})", cause = error))
                    },
                )
            }
        }

    /** Makes the exchange. [ensureActive] throws if the caller has gone. Closing a connection that is not open yet would end nothing. */
    private fun exchange(connection: HttpURLConnection, request: HttpRequest, ensureActive: () -> Unit): HttpAnswer {
        val timeout = request.deadline.inWholeMilliseconds.coerceIn(1, Int.MAX_VALUE.toLong()).toInt()
        connection.connectTimeout = timeout
        connection.readTimeout = timeout
        connection.instanceFollowRedirects = false
        connection.useCaches = false
        connection.requestMethod = request.method
        // Android would ask for gzip and hide it. The limit is for the bytes that arrive.
        connection.setRequestProperty("Accept-Encoding", "identity")
        for ((name, value) in request.headers) connection.addRequestProperty(name, value)
        connection.doOutput = request.body.isNotEmpty()
        ensureActive()
        connection.connect()
        ensureActive()
        if (request.body.isNotEmpty()) connection.outputStream.use { it.write(request.body) }
        val status = connection.responseCode
        if (status < 0) throw TransportException("the answer is not HTTP")
        val headers = generateSequence(0) { it + 1 }.map { connection.getHeaderFieldKey(it) to connection.getHeaderField(it) }
            // The first line may be the status, which has no name.
            .takeWhile { it.second != null }.mapNotNull { (name, value) -> name?.let { it to value } }.toList()
        val stream = if (status >= 400) connection.errorStream else connection.inputStream
        return HttpAnswer(status, headers, stream?.use { read(it, request.maximumAnswer, connection) } ?: ByteArray(0))
    }

    private fun read(stream: InputStream, limit: Int, connection: HttpURLConnection): ByteArray {
        val body = ByteArrayOutputStream()
        val piece = ByteArray(8 * 1024)
        while (true) {
            val count = stream.read(piece)
            if (count < 0) return body.toByteArray()
            body.write(piece, 0, count)
            if (body.size() > limit) {
                // Otherwise closing the stream would read the rest.
                connection.disconnect()
                throw TransportException("the answer is too large", isTooLarge = true)
            }
        }
    }

    private fun inBackground(body: () -> Unit) {
        background.dispatch(EmptyCoroutineContext) {
            try {
                body()
            } catch (_: Exception) {
            }
        }
    }

    private companion object {
        const val CHANGED_IN_PATH = "\"<>^`{}|\\"
        const val CHANGED_IN_QUERY = "\"'<>"
    }
}
