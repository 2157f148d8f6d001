package ai.synheart.auth

import java.io.InputStream
import kotlin.time.Duration
import kotlin.time.Duration.Companion.seconds

/** One HTTP request. */
public class HttpRequest(
    /** The method. */
    public val method: String,
    /** The absolute URL, as sent. */
    public val url: String,
    /** The header lines, without Host and Content-Length. */
    public val headers: List<Pair<String, String>> = emptyList(),
    /** The body; empty if there is none. */
    public val body: ByteArray = ByteArray(0),
    /** The limit of the whole exchange; in `SynheartAuth.send` of the whole call, recoveries included. */
    public val deadline: Duration = 30.seconds,
    /** The most bytes of the answer's body. */
    public val maximumAnswer: Int = 4 * 1024 * 1024,
    /** Whether the body of a 2xx or 3xx is `HttpAnswer.stream` instead of bytes. The deadline then ends with the answer's head. */
    public val streamsAnswer: Boolean = false,
) {
    internal fun with(
        method: String = this.method, headers: List<Pair<String, String>> = this.headers, deadline: Duration = this.deadline,
    ) = HttpRequest(method, url, headers, body, deadline, maximumAnswer, streamsAnswer)

    /** Method and URL, without headers and body. */
    override fun toString(): String = "HttpRequest($method $url)"
}

/** One HTTP answer. */
public class HttpAnswer(
    /** The status code. */
    public val status: Int,
    /** The header lines. */
    public val headers: List<Pair<String, String>> = emptyList(),
    /** The body, without transfer coding; empty if it is [stream]. */
    public val body: ByteArray = ByteArray(0),
    /** The body of an answer to a request that streams it. The caller reads it on a thread that may block, and closes it. */
    public val stream: InputStream? = null,
) {
    /** The value of a header that is there once; null if it is absent or repeated. Case does not matter. */
    public fun header(name: String): String? =
        headers.filter { it.first.equals(name, ignoreCase = true) }.map { it.second.trim(' ', '\t') }.singleOrNull()

    /** The status alone. */
    override fun toString(): String = "HttpAnswer($status)"
}
