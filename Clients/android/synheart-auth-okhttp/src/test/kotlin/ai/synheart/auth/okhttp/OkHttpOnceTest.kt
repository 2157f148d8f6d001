package ai.synheart.auth.okhttp

import ai.synheart.auth.CountingServer
import ai.synheart.auth.CountingServer.Fate
import ai.synheart.auth.HttpRequest
import ai.synheart.auth.HttpResponse
import ai.synheart.auth.OnceRuns
import ai.synheart.auth.SignatureScheme
import ai.synheart.auth.SynheartAuth
import java.io.BufferedInputStream
import java.io.IOException
import java.io.InputStream
import java.net.Socket
import java.net.URI
import okhttp3.Authenticator
import okhttp3.Call
import okhttp3.Headers
import okhttp3.HttpUrl
import okhttp3.Network
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.RequestBody.Companion.toRequestBody
import okhttp3.Response
import okhttp3.Route
import okhttp3.bytes
import org.junit.Assert.assertEquals
import org.junit.Assert.assertThrows
import org.junit.Test

/** OkHttp's rules for sending a request again, on sockets: a signed request is on the wire once. */
class OkHttpOnceTest {
    /**
     * Connections to one server, with a pool of one. If a pooled connection fails, OkHttp has another route. If new connections
     * fail, it has another route for the first two failures of a call.
     */
    private class Sockets : Network {
        private var idle: Connection? = null
        private var call: Call? = null
        private var routes = 0

        override fun connect(call: Call): Network.Connection {
            if (this.call !== call) routes = 0
            this.call = call
            return idle?.also { idle = null } ?: Connection(isPooled = false)
        }

        private inner class Connection(private var isPooled: Boolean) : Network.Connection {
            private var socket: Socket? = null
            private lateinit var input: InputStream
            override val hasAnotherRoute: Boolean get() = isPooled || routes++ < 2

            override fun exchange(request: Request): Response = try {
                val response = send(request)
                isPooled = true
                idle = this
                response
            } catch (error: IOException) {
                socket?.close()
                throw error
            }

            private fun send(request: Request): Response {
                val url = URI(request.url.toString())
                val socket = socket ?: Socket(url.host, url.port).also {
                    socket = it
                    input = BufferedInputStream(it.getInputStream())
                }
                val body = request.body?.bytes()
                val lines = listOf("${request.method} ${url.rawPath} HTTP/1.1", "Host: ${url.authority}") +
                    List(request.headers.size) { "${request.headers.name(it)}: ${request.headers.value(it)}" } +
                    listOfNotNull(body?.let { "Content-Length: ${it.size}" })
                socket.getOutputStream().write(lines.joinToString("\r\n", postfix = "\r\n\r\n").toByteArray() + (body ?: ByteArray(0)))
                val head = generateSequence { line() }.takeWhile { it.isNotEmpty() }.toList()
                if (head.isEmpty()) throw IOException("unexpected end of stream")
                val headers = Headers.Builder()
                for (line in head.drop(1)) headers.add(line.substringBefore(':'), line.substringAfter(':').trim())
                val length = head.firstOrNull { it.startsWith("Content-Length: ") }?.substringAfter(": ")?.toInt() ?: 0
                val bytes = input.readNBytes(length)
                if (bytes.size < length) throw IOException("unexpected end of stream")
                return Response(request, head[0].split(" ")[1].toInt(), headers.build(), bytes)
            }

            private fun line(): String? {
                val line = StringBuilder()
                while (true) {
                    val byte = input.read()
                    if (byte < 0) return null
                    if (byte == '\n'.code) return line.toString().trimEnd('\r')
                    line.append(byte.toChar())
                }
            }
        }
    }

    /** An app's own authenticator, which has a password ready. */
    private object Passwords : Authenticator {
        override fun authenticate(route: Route?, response: Response): Request = response.request.newBuilder().build()
    }

    private fun client(auth: SynheartAuth, scheme: SignatureScheme? = null): OkHttpClient = OkHttpClient.Builder().authenticator(Passwords)
        .addSynheartAuth(auth, "com.example.app", scheme).apply { network = Sockets() }.build()

    private fun HttpRequest.toOkHttp(): Request {
        val lines = Headers.Builder().apply { for ((name, value) in headers) add(name, value) }.build()
        val needsBody = method == "POST" || method == "PUT" || method == "PATCH"
        return Request(HttpUrl(url), method, lines, if (needsBody) body.toRequestBody() else null)
    }

    private val clients = HashMap<SynheartAuth, OkHttpClient>()

    @Test
    fun `OkHttp sends no write twice, and says whether it may have happened`() =
        OnceRuns.run(listOf("GET", "POST", "PATCH", "POST", "PUT", "DELETE"), { auth, request ->
            val response = clients.getOrPut(auth) { client(auth) }.newCall(request.toOkHttp()).execute()
            response.use { HttpResponse(it.code) }
        }) { (it as? SynheartAuthIOException)?.error }

    @Test
    fun `OkHttp sends no streamed write twice, and says whether it may have happened`() = OnceRuns.run(
        listOf("GET", "POST", "PATCH", "POST", "PUT", "DELETE"),
        { auth, request ->
            val response = clients.getOrPut(auth) { client(auth, SignatureScheme.TWO) }.newCall(request.toOkHttp()).execute()
            response.use { HttpResponse(it.code) }
        },
        SignatureScheme.TWO,
    ) { (it as? SynheartAuthIOException)?.error }

    private fun server(body: (CountingServer, OkHttpClient) -> Unit) = OnceRuns.device { server, auth -> body(server, client(auth)) }

    @Test
    fun `a GET on a stale connection is signed and sent once more, and a POST is not`() = server { server, client ->
        server.fates.add(Fate.ANSWER_AND_CLOSE)
        val get = HttpRequest("GET", "${server.url}/v1/x").toOkHttp()
        assertEquals(200, client.newCall(get).execute().code)
        assertEquals(200, client.newCall(get).execute().code)
        server.fates.addAll(listOf(Fate.ANSWER, Fate.CLOSE_AFTER))
        val post = HttpRequest("POST", "${server.url}/v1/x", body = ByteArray(3)).toOkHttp()
        assertEquals(200, client.newCall(post).execute().code)
        val before = server.executions.get()
        assertThrows(IOException::class.java) { client.newCall(post).execute() }
        assertEquals(before + 1, server.executions.get())
    }

    @Test
    fun `a 401 of a request without a body is its answer, which the app's authenticator does not get`() = server { server, client ->
        for (method in listOf("GET", "DELETE")) {
            server.fates.add(Fate.CHALLENGE)
            val before = server.requests.get()
            assertEquals(401, client.newCall(HttpRequest(method, "${server.url}/v1/x").toOkHttp()).execute().code)
            assertEquals(before + 1, server.requests.get())
        }
    }

    @Test
    fun `a 408 or 503 to a write is returned and not retried`() = server { server, client ->
        for ((fate, status) in listOf(Fate.CHALLENGE to 401, Fate.UNAVAILABLE to 503, Fate.TIMEOUT to 408, Fate.REDIRECT to 307)) {
            server.fates.add(fate)
            val before = server.requests.get()
            assertEquals(status, client.newCall(HttpRequest("POST", "${server.url}/v1/x", body = ByteArray(3)).toOkHttp()).execute().code)
            assertEquals(before + 1, server.requests.get())
        }
    }
}
