package ai.synheart.auth

import java.io.IOException
import java.io.InputStream
import java.io.OutputStream
import kotlin.time.Duration
import kotlin.time.Duration.Companion.seconds

/**
 * A request body that is written in pieces, so that it need not fit into memory. The client writes it more than once: first to
 * compute the digest that it signs, then for each copy of the request that it sends.
 *
 * ```
 * StreamedBody { output -> file.inputStream().use { it.copyTo(output) } }
 * ```
 */
public fun interface StreamedBody {
    /**
     * Writes the whole body: the same bytes at each call. The client calls this function on a background thread, so it may
     * block. It must not close [output].
     *
     * @throws IOException if the body cannot be read. Do not catch exceptions of [output]
     */
    @Throws(IOException::class)
    public fun writeTo(output: OutputStream)
}

/** The usual limit of an answer: 4 MiB. */
internal const val USUAL_MAXIMUM_ANSWER = 4 * 1024 * 1024

/** One HTTP request. */
public class HttpRequest internal constructor(
    /** The method. */
    public val method: String,
    /** The absolute URL, as sent. */
    public val url: String,
    /** The header lines, without Host and Content-Length. */
    public val headers: List<Pair<String, String>>,
    /** The body; empty if there is none, or if it is streamed. */
    public val body: ByteArray,
    /** The body, if it is streamed; else null. Only scheme 2 signs one. */
    public val streamedBody: StreamedBody?,
    /**
     * The size of the body in bytes; null for a streamed body whose size is not known yet. In requests that `send` gives to a
     * transport, the size is set.
     */
    public val bodySize: Long?,
    /** The time limit of the exchange. In `SynheartAuth.send` it limits the whole call, with every copy and recovery. */
    public val deadline: Duration,
    /** The maximum size of the answer's body, in bytes. */
    public val maximumAnswer: Int,
    /** Whether a 2xx or 3xx answer gives its body as `HttpResponse.stream`. The deadline then does not limit the reading of the body. */
    public val streamsAnswer: Boolean,
) {
    /** A request with a body in memory, or without one. */
    public constructor(
        method: String, url: String, headers: List<Pair<String, String>> = emptyList(), body: ByteArray = ByteArray(0),
        deadline: Duration = 30.seconds, maximumAnswer: Int = USUAL_MAXIMUM_ANSWER, streamsAnswer: Boolean = false,
    ) : this(method, url, headers, body, null, body.size.toLong(), deadline, maximumAnswer, streamsAnswer)

    /** A request with a streamed body. The deadline bounds reading and sending it, too. */
    public constructor(
        method: String, url: String, headers: List<Pair<String, String>> = emptyList(), streamedBody: StreamedBody,
        deadline: Duration = 30.seconds, maximumAnswer: Int = USUAL_MAXIMUM_ANSWER, streamsAnswer: Boolean = false,
    ) : this(method, url, headers, ByteArray(0), streamedBody, null, deadline, maximumAnswer, streamsAnswer)

    /** The request as a transport gets it. */
    internal fun signed(method: String, headers: List<Pair<String, String>>, body: MeasuredBody?, deadline: Duration) = HttpRequest(
        method, url, headers, this.body, body, body?.size ?: this.body.size.toLong(), deadline, maximumAnswer, streamsAnswer,
    )

    /** Method and URL, without headers and body. */
    override fun toString(): String = "HttpRequest($method $url)"
}

/** One HTTP answer. */
public class HttpResponse(
    /** The status code. */
    public val status: Int,
    /** The header lines. */
    public val headers: List<Pair<String, String>> = emptyList(),
    /** The body, without transfer coding; empty if [stream] has the body. */
    public val body: ByteArray = ByteArray(0),
    /** The body of a 2xx or 3xx if the request has `streamsAnswer`; else null. The caller reads it on a background thread and closes it. */
    public val stream: InputStream? = null,
) {
    /** The value of a header that occurs exactly once; null if it is absent or repeated. The case of the name does not matter. */
    public fun header(name: String): String? =
        headers.filter { it.first.equals(name, ignoreCase = true) }.map { it.second.trim(' ', '\t') }.singleOrNull()

    /** Closes a stream that no caller receives. */
    internal fun abandon() {
        try {
            stream?.close()
        } catch (_: IOException) {
        }
    }

    /** Only the status. */
    override fun toString(): String = "HttpResponse($status)"
}
