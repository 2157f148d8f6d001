package ai.synheart.auth

import java.io.ByteArrayOutputStream
import java.io.EOFException
import java.io.FilterInputStream
import java.io.IOException
import java.io.InputStream
import java.net.ConnectException
import java.net.HttpURLConnection
import java.net.NoRouteToHostException
import java.net.URL
import java.net.UnknownHostException
import javax.net.ssl.SSLHandshakeException
import kotlin.coroutines.EmptyCoroutineContext
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.suspendCancellableCoroutine
import kotlinx.coroutines.withTimeoutOrNull

/**
 * A transport over `HttpURLConnection`: no redirects, no cache. Cookies, proxies and TLS are those of the process.
 *
 * A request is sent once. The platform repeats a request by itself if a connection fails or a server asks for a
 * password, unless the body is streamed. So every request except GET, HEAD and TRACE is streamed, even without a
 * body. (With streaming, a JVM loses the body of a 401. Android does not. The client reads the error's code from the
 * headers.) A repeated GET is safe.
 *
 * Android's HTTP stack escapes some characters of a URL itself, but a signature covers the URL as it is sent. So the
 * transport refuses a URL with these characters.
 */
public class UrlConnectionTransport internal constructor(
    /** The dispatcher that runs the exchanges. Each blocks a thread. */
    private val background: CoroutineDispatcher,
    /** The dispatcher that closes connections. */
    private val closing: CoroutineDispatcher = background,
) : HttpTransport {
    /** A transport on threads of its own: at most 16 exchanges run at once in a process. Others wait for their turn. */
    public constructor() : this(EXCHANGES, CLOSING)

    override suspend fun send(request: HttpRequest): HttpResponse {
        val path = request.url.substringBefore('?')
        if (path.any { it in CHANGED_IN_PATH } || request.url.drop(path.length).any { it in CHANGED_IN_QUERY }) {
            throw TransportException("the URL has characters that must be escaped", isUnsendable = true)
        }
        if ((request.body.isNotEmpty() || request.streamedBody != null) && request.method in WITHOUT_BODY) {
            // HttpURLConnection would change a GET with a body into a POST.
            throw TransportException("a ${request.method} with a body cannot be sent", isUnsendable = true)
        }
        val exchange = try {
            Exchange(URL(request.url).openConnection() as HttpURLConnection, request)
        } catch (error: Exception) {
            throw TransportException("not a URL or a method that the platform sends", isUnsendable = true, cause = error)
        }
        var isReceived = false
        try {
            val answer = withTimeoutOrNull(request.deadline) { run(exchange) }
                ?: throw TransportException("no answer in time", mayHaveArrived = exchange.mayHaveLeft)
            isReceived = true
            return answer
        } finally {
            // Close the connection. The request may be incomplete, and Android keeps a connection open if a request body ends early.
            if (!isReceived) closing.inBackground { exchange.connection.disconnect() }
        }
    }

    /** Makes the exchange on another thread. Cancelling the caller closes the connection. */
    private suspend fun run(exchange: Exchange): HttpResponse = suspendCancellableCoroutine { continuation ->
        continuation.invokeOnCancellation { closing.inBackground { exchange.connection.disconnect() } }
        background.inBackground {
            val result = try {
                Result.success(exchange.run { if (!continuation.isActive) throw TransportException("the caller has left", mayHaveArrived = false) })
            } catch (error: TransportException) {
                Result.failure(error)
            } catch (error: Exception) {
                // Not only an IOException: the platform's HTTP stack also throws other exceptions, for example for a missing permission.
                val message = "no answer (${error.javaClass.simpleName})"
                Result.failure(TransportException(message, mayHaveArrived = exchange.mayHaveLeft, cause = error))
            } catch (error: Throwable) {
                // An `Error`, such as one of the streamed body, reaches the caller unchanged.
                Result.failure(error)
            }
            continuation.resumeWith(result)
        }
    }

    /** One request and its answer. */
    private class Exchange(val connection: HttpURLConnection, private val request: HttpRequest) {
        /** Whether a byte of the request may have been sent. */
        @Volatile
        var mayHaveLeft = false
            private set

        init {
            connection.requestMethod = request.method
        }

        /**
         * Makes the exchange. [ensureActive] throws if the caller was cancelled. This function calls it before and after
         * connecting, because closing a connection that is not open yet has no effect.
         */
        fun run(ensureActive: () -> Unit): HttpResponse {
            prepare()
            ensureActive()
            connect()
            ensureActive()
            if (connection.doOutput) connection.outputStream.use { output -> request.streamedBody?.writeTo(output) ?: output.write(request.body) }
            val status = connection.responseCode
            if (status < 0) throw TransportException("the answer is not HTTP")
            val headers = generateSequence(0) { it + 1 }.map { connection.getHeaderFieldKey(it) to connection.getHeaderField(it) }
                // The first line may be the status, which has no name.
                .takeWhile { it.second != null }.mapNotNull { (name, value) -> name?.let { it to value } }.toList()
            // These answers state the length of a body that they do not have.
            val length = if (request.method == "HEAD" || status == 304) -1 else connection.contentLengthLong
            val stream = (if (status >= 400) connection.errorStream else connection.inputStream)?.let { Body(it, length, connection) }
            if (request.streamsAnswer && status < 400 && stream != null) return HttpResponse(status, headers, stream = stream)
            return HttpResponse(status, headers, stream?.use(::read) ?: ByteArray(0))
        }

        private fun prepare() {
            val timeout = request.deadline.inWholeMilliseconds.coerceIn(1, Int.MAX_VALUE.toLong()).toInt()
            connection.connectTimeout = timeout
            connection.readTimeout = timeout
            connection.instanceFollowRedirects = false
            connection.useCaches = false
            // Without this header, Android requests gzip and decodes the body itself. Then `maximumAnswer` would not limit the bytes
            // that the server sends.
            connection.setRequestProperty("Accept-Encoding", "identity")
            for ((name, value) in request.headers) connection.addRequestProperty(name, value)
            if (request.method in WITHOUT_BODY) return
            connection.doOutput = true
            val size = request.bodySize
            if (size == null) connection.setChunkedStreamingMode(0) else connection.setFixedLengthStreamingMode(size)
        }

        /** Connects. On Android this already sends the request line and the headers. */
        private fun connect() {
            mayHaveLeft = true
            try {
                connection.connect()
            } catch (error: IOException) {
                if (BEFORE_SENDING.any { it.isInstance(error) }) mayHaveLeft = false
                throw error
            }
        }

        private fun read(stream: InputStream): ByteArray {
            val body = ByteArrayOutputStream()
            val piece = ByteArray(8 * 1024)
            while (true) {
                val count = stream.read(piece)
                if (count < 0) return body.toByteArray()
                body.write(piece, 0, count)
                if (body.size() > request.maximumAnswer) throw TransportException("the answer is too large", isTooLarge = true)
            }
        }
    }

    /**
     * The body of an answer, of [length] bytes; -1 if the length is not known. Throws if the body ends earlier: Android's stream does
     * that too, but not a JVM's. Closing the body early does not read the rest.
     */
    private class Body(stream: InputStream, private val length: Long, private val connection: HttpURLConnection) : FilterInputStream(stream) {
        private var received = 0L
        private var hasEnded = false

        override fun read(): Int = super.read().also { count(if (it < 0) -1 else 1) }
        override fun read(bytes: ByteArray, offset: Int, length: Int): Int = super.read(bytes, offset, length).also(::count)

        private fun count(bytes: Int) {
            if (bytes >= 0) {
                received += bytes
                return
            }
            if (received < length) throw EOFException("the answer was cut short")
            hasEnded = true
        }

        override fun close() {
            if (hasEnded) super.close() else connection.disconnect()
        }
    }

    private companion object {
        /** Threads in addition to those of `Dispatchers.IO`, which the app's own code uses. */
        val EXCHANGES = Dispatchers.IO.limitedParallelism(16)
        val CLOSING = Dispatchers.IO.limitedParallelism(2)
        val WITHOUT_BODY = setOf("GET", "HEAD", "TRACE")
        val BEFORE_SENDING = listOf(
            ConnectException::class.java, NoRouteToHostException::class.java, UnknownHostException::class.java, SSLHandshakeException::class.java,
        )
        const val CHANGED_IN_PATH = "\"<>^`{}|\\"
        const val CHANGED_IN_QUERY = "\"'<>"

        fun CoroutineDispatcher.inBackground(body: () -> Unit) = dispatch(EmptyCoroutineContext) {
            try {
                body()
            } catch (_: Exception) {
            }
        }
    }
}
