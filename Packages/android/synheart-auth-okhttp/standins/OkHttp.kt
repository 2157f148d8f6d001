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

/** Calls the interceptors as OkHttp does: the application's around all copies of a request, the network's around each. */
public class OkHttpClient private constructor(private val from: Builder) {
    public fun newCall(request: Request): Call = Call { Links(from.interceptors + FollowUps(), request).proceed(request) }

    public fun interface Call {
        public fun execute(): Response
    }

    private inner class FollowUps : Interceptor {
        override fun intercept(chain: Interceptor.Chain): Response {
            var request = chain.request()
            while (true) {
                val response = Links(from.networkInterceptors + Interceptor { from.network(it.request()) }, request).proceed(request)
                val place = response.location
                if (!from.followsRedirects || !response.isRedirect || place == null) return response
                // OkHttp takes all headers along but Authorization, and the tags.
                request = request.newBuilder().url(HttpUrl(place)).build()
            }
        }
    }

    private class Links(private val rest: List<Interceptor>, private val request: Request) : Interceptor.Chain {
        override fun request() = request
        override fun proceed(request: Request) = rest.first().intercept(Links(rest.drop(1), request))
    }

    public class Builder {
        internal val interceptors = mutableListOf<Interceptor>()
        internal val networkInterceptors = mutableListOf<Interceptor>()
        internal var followsRedirects = true
        internal var network: (Request) -> Response = { throw java.io.IOException("no network") }
        public fun addInterceptor(interceptor: Interceptor): Builder = apply { interceptors.add(interceptor) }
        public fun addNetworkInterceptor(interceptor: Interceptor): Builder = apply { networkInterceptors.add(interceptor) }
        public fun followRedirects(followRedirects: Boolean): Builder = apply { followsRedirects = followRedirects }
        public fun followSslRedirects(followProtocolRedirects: Boolean): Builder = apply { followProtocolRedirects.hashCode() }

        /** For tests: what answers. */
        public fun network(answer: (Request) -> Response): Builder = apply { network = answer }
        public fun build(): OkHttpClient = OkHttpClient(this)
    }
}

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
    private val tags: Map<Class<*>, Any?> = emptyMap(),
) {
    public fun newBuilder(): Builder = Builder(this)
    public fun <T> tag(type: Class<out T>): T? = type.cast(tags[type])

    public open class Builder(private val from: Request) {
        private var method = from.method
        private var headers = from.headers
        private var body = from.body
        private var url = from.url
        private var tags = from.tags
        public open fun url(url: HttpUrl): Builder = apply { this.url = url }
        public open fun <T> tag(type: Class<in T>, tag: T?): Builder = apply { tags = tags + (type to tag) }
        public open fun headers(headers: Headers): Builder = apply { this.headers = headers }
        public open fun method(method: String, body: RequestBody?): Builder = apply {
            this.method = method
            this.body = body
        }
        public open fun build(): Request = Request(url, method, headers, body, tags)
    }
}

public class ResponseBody(private val bytes: ByteArray) {
    public fun bytes(): ByteArray = bytes
}

public class Response(
    @get:JvmName("code") public val code: Int,
    @get:JvmName("headers") public val headers: Headers,
    private val bytes: ByteArray,
    internal val location: String? = null,
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
