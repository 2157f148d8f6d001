// What the interceptor uses of OkHttp 4, with the names that its class files have.
package okhttp3

import okio.Buffer
import okio.BufferedSink

public fun interface Interceptor {
    public fun intercept(chain: Chain): Response

    public interface Chain {
        public fun request(): Request
        public fun proceed(request: Request): Response
    }
}

public class HttpUrl(private val text: String) {
    override fun toString(): String = text
}

public class MediaType

public class Headers private constructor(private val lines: List<Pair<String, String>>) {
    @get:JvmName("size")
    public val size: Int get() = lines.size
    public fun name(index: Int): String = lines[index].first
    public fun value(index: Int): String = lines[index].second

    public class Builder {
        private val lines = mutableListOf<Pair<String, String>>()
        public fun add(name: String, value: String): Builder = apply { lines.add(name to value) }
        public fun build(): Headers = Headers(lines)
    }
}

public abstract class RequestBody {
    public abstract fun contentType(): MediaType?
    public abstract fun writeTo(sink: BufferedSink)

    public companion object {
        @JvmStatic
        @JvmOverloads
        public fun ByteArray.toRequestBody(contentType: MediaType? = null, offset: Int = 0, byteCount: Int = size): RequestBody =
            object : RequestBody() {
                override fun contentType() = contentType
                override fun writeTo(sink: BufferedSink) = sink.write(copyOfRange(offset, offset + byteCount))
            }
    }
}

public class Request(
    @get:JvmName("url") public val url: HttpUrl,
    @get:JvmName("method") public val method: String,
    @get:JvmName("headers") public val headers: Headers,
    @get:JvmName("body") public val body: RequestBody?,
) {
    public fun newBuilder(): Builder = Builder(this)

    public open class Builder(private val from: Request) {
        private var method = from.method
        private var headers = from.headers
        private var body = from.body
        public open fun headers(headers: Headers): Builder = apply { this.headers = headers }
        public open fun method(method: String, body: RequestBody?): Builder = apply {
            this.method = method
            this.body = body
        }
        public open fun build(): Request = Request(from.url, method, headers, body)
    }
}

public class ResponseBody(private val bytes: ByteArray) {
    public fun bytes(): ByteArray = bytes
}

public class Response(
    @get:JvmName("code") public val code: Int,
    @get:JvmName("headers") public val headers: Headers,
    private val bytes: ByteArray,
    @get:JvmName("priorResponse") public val priorResponse: Response? = null,
) : java.io.Closeable {
    /** Whether the answer was given back. OkHttp allows one open answer of a chain. */
    public var isClosed: Boolean = false
        private set
    public val isRedirect: Boolean get() = code in 300..308
    public fun peekBody(byteCount: Long): ResponseBody = ResponseBody(bytes.copyOf(minOf(byteCount, bytes.size.toLong()).toInt()))
    override fun close() {
        isClosed = true
    }
}
