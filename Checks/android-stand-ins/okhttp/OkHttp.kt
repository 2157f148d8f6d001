// The parts of OkHttp 4 and 5 that the SDK's interceptor uses. Classes and methods have the JVM names that they have in OkHttp.
package okhttp3

import java.io.IOException
import okio.Buffer
import okio.BufferedSink

public fun interface Interceptor {
    public fun intercept(chain: Chain): Response

    public interface Chain {
        public fun request(): Request
        public fun proceed(request: Request): Response
        public fun call(): Call
    }
}

public class Route internal constructor()

// In OkHttp 4 this is not a `fun interface`.
public interface Authenticator {
    @Throws(IOException::class)
    public fun authenticate(route: Route?, response: Response): Request?
}

public class HttpUrl internal constructor(private val text: String) {
    override fun toString(): String = text
}

public class MediaType internal constructor(private val text: String) {
    override fun toString(): String = text
}

public interface Call {
    public fun execute(): Response
    public fun cancel()
    public fun isCanceled(): Boolean
}

/** The network, which tests replace. */
internal interface Network {
    /** Makes a connection for one exchange. If this fails, nothing was sent. */
    fun connect(call: Call): Connection

    interface Connection {
        /** Whether OkHttp may retry if this connection fails: the connection was pooled, or the host has more addresses. */
        val hasAnotherRoute: Boolean

        fun exchange(request: Request): Response
    }
}

/** Calls the interceptors as OkHttp does: application interceptors once a call, network interceptors once for each sent copy. */
public open class OkHttpClient internal constructor(private val from: Builder) {
    public constructor() : this(Builder())

    @get:JvmName("authenticator")
    public val authenticator: Authenticator = from.authenticator

    public open fun newCall(request: Request): Call = RealCall(request)

    private inner class RealCall(private val request: Request) : Call {
        @Volatile
        private var isCanceled = false

        override fun execute(): Response = Links(this, from.interceptors + RetryAndFollowUp(this), request).proceed(request)
        override fun isCanceled() = isCanceled
        override fun cancel() {
            isCanceled = true
        }
    }

    /** OkHttp's rules for sending a request again: after a failed connection, and after an answer that demands it. */
    private inner class RetryAndFollowUp(private val call: Call) : Interceptor {
        override fun intercept(chain: Interceptor.Chain): Response {
            var request = chain.request()
            var prior: Response? = null
            var followUps = 0
            while (true) {
                if (call.isCanceled()) throw IOException("Canceled")
                val connection = from.network.connect(call)
                val response = try {
                    val server = Interceptor { connection.exchange(it.request()) }
                    Links(call, from.networkInterceptors + server, request).proceed(request)
                } catch (error: IOException) {
                    val mayRetry = from.retriesOnConnectionFailure && request.body?.isOneShot() != true && connection.hasAnotherRoute
                    if (!mayRetry || call.isCanceled()) throw error
                    continue
                }
                val next = followUp(response, prior)
                if (next == null || next.body?.isOneShot() == true) return response
                response.close()
                if (++followUps > MAXIMUM_FOLLOW_UPS) throw java.net.ProtocolException("Too many follow-up requests: $followUps")
                prior = response
                request = next
            }
        }

        private fun followUp(response: Response, prior: Response?): Request? = when (response.code) {
            401 -> authenticator.authenticate(null, response)
            408 -> response.request.takeIf { from.retriesOnConnectionFailure && prior?.code != 408 && response.header("Retry-After").orZero() == 0 }
            503 -> response.request.takeIf { prior?.code != 503 && response.header("Retry-After") == "0" }
            300, 301, 302, 303, 307, 308 -> response.header("Location")?.takeIf { from.followsRedirects }?.let { place ->
                // OkHttp keeps the tags and the headers. For another host, OkHttp removes Authorization, but this stand-in keeps it.
                val keepsMethod = response.code == 307 || response.code == 308 || response.request.method in setOf("GET", "HEAD", "PROPFIND")
                response.request.newBuilder().url(HttpUrl(place)).apply { if (!keepsMethod) method("GET", null) }.build()
            }
            else -> null
        }

        private fun String?.orZero() = this?.toIntOrNull() ?: 0
    }

    private class Links(private val call: Call, private val rest: List<Interceptor>, private val request: Request) : Interceptor.Chain {
        override fun request() = request
        override fun proceed(request: Request) = rest.first().intercept(Links(call, rest.drop(1), request))
        override fun call() = call
    }

    public class Builder {
        internal val interceptors = mutableListOf<Interceptor>()
        internal val networkInterceptors = mutableListOf<Interceptor>()
        internal var followsRedirects = true
        internal var retriesOnConnectionFailure = true

        internal var authenticator: Authenticator = object : Authenticator {
            override fun authenticate(route: Route?, response: Response): Request? = null
        }

        /** Carries the requests. Tests replace it. */
        internal var network: Network = object : Network {
            override fun connect(call: Call) = throw IOException("no network")
        }
        public fun addInterceptor(interceptor: Interceptor): Builder = apply { interceptors.add(interceptor) }
        public fun addNetworkInterceptor(interceptor: Interceptor): Builder = apply { networkInterceptors.add(interceptor) }
        public fun authenticator(authenticator: Authenticator): Builder = apply { this.authenticator = authenticator }
        public fun followRedirects(followRedirects: Boolean): Builder = apply { followsRedirects = followRedirects }
        public fun followSslRedirects(followProtocolRedirects: Boolean): Builder = apply { followProtocolRedirects.hashCode() }
        public fun build(): OkHttpClient = OkHttpClient(this)
    }

    private companion object {
        const val MAXIMUM_FOLLOW_UPS = 20
    }
}

public class Headers internal constructor(private val lines: List<Pair<String, String>>) {
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
    public open fun contentLength(): Long = -1
    public abstract fun writeTo(sink: BufferedSink)
    public open fun isOneShot(): Boolean = false

    public open fun isDuplex(): Boolean = false

    public companion object {
        @JvmStatic
        @JvmOverloads
        @JvmName("create")
        public fun ByteArray.toRequestBody(contentType: MediaType? = null, offset: Int = 0, byteCount: Int = size): RequestBody {
            val bytes = this
            return object : RequestBody() {
                override fun contentType() = contentType
                override fun contentLength() = byteCount.toLong()
                override fun writeTo(sink: BufferedSink) {
                    sink.write(bytes.copyOfRange(offset, offset + byteCount))
                }
            }
        }
    }
}

public class Request internal constructor(
    @get:JvmName("url") public val url: HttpUrl,
    @get:JvmName("method") public val method: String,
    @get:JvmName("headers") public val headers: Headers,
    @get:JvmName("body") public val body: RequestBody?,
    private val tags: Map<Class<*>, Any?> = emptyMap(),
) {
    public fun newBuilder(): Builder = Builder(this)
    public fun <T> tag(type: Class<out T>): T? = type.cast(tags[type])

    public open class Builder internal constructor(from: Request?) {
        public constructor() : this(null)

        private var method = from?.method ?: "GET"
        private var headers = from?.headers ?: Headers(emptyList())
        private var body = from?.body
        private var url = from?.url
        private var tags = from?.tags ?: emptyMap()
        public open fun url(url: HttpUrl): Builder = apply { this.url = url }
        public open fun <T> tag(type: Class<in T>, tag: T?): Builder = apply { tags = tags + (type to tag) }
        public open fun headers(headers: Headers): Builder = apply { this.headers = headers }
        public open fun method(method: String, body: RequestBody?): Builder = apply {
            this.method = method
            this.body = body
        }
        public open fun build(): Request = Request(checkNotNull(url) { "url == null" }, method, headers, body, tags)
    }
}

public abstract class ResponseBody : java.io.Closeable {
    public fun bytes(): ByteArray = content()
    internal abstract fun content(): ByteArray
    override fun close() {}
}

public class Response internal constructor(
    @get:JvmName("request") public val request: Request,
    @get:JvmName("code") public val code: Int,
    @get:JvmName("headers") public val headers: Headers,
    private val bytes: ByteArray,
) : java.io.Closeable {
    /** Whether the response was closed. OkHttp allows a chain only one open response. */
    internal var isClosed: Boolean = false
        private set
    public val isRedirect: Boolean get() = code in 300..303 || code in 307..308
    public val isSuccessful: Boolean get() = code in 200..299
    public fun peekBody(byteCount: Long): ResponseBody = object : ResponseBody() {
        override fun content() = bytes.copyOf(minOf(byteCount, bytes.size.toLong()).toInt())
    }

    internal fun header(name: String): String? =
        (0 until headers.size).firstOrNull { headers.name(it).equals(name, ignoreCase = true) }?.let(headers::value)

    override fun close() {
        isClosed = true
    }
}

internal fun RequestBody.bytes(): ByteArray = Buffer().also(::writeTo).readByteArray()
