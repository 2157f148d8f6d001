package ai.synheart.auth

import ai.synheart.auth.CountingServer.Fate
import java.net.Authenticator
import java.net.PasswordAuthentication
import java.net.ServerSocket
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.async
import kotlinx.coroutines.awaitCancellation
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.supervisorScope
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertThrows
import org.junit.Assert.assertTrue
import org.junit.Test

/** One `send` takes effect once, whatever happens on the way. */
class OnceTest {
    @Test
    fun `HttpURLConnection sends no write twice, and says whether it may have happened`() =
        OnceRuns.run(listOf("GET", "POST", "POST", "PUT", "DELETE"), { auth, request -> runBlocking { auth.send(MemoryPhone.APP, request) } }) {
            it as SynheartAuthException
        }

    @Test
    fun `HttpURLConnection sends no streamed write twice, and says whether it may have happened`() = OnceRuns.run(
        listOf("GET", "POST", "POST", "PUT", "DELETE"),
        { auth, request ->
            val streamed = HttpRequest(request.method, request.url, request.headers, StreamedBody { it.write(request.body) })
            runBlocking { auth.send(MemoryPhone.APP, if (request.body.isEmpty()) request else streamed) }
        },
        SignatureScheme.TWO,
    ) { it as SynheartAuthException }

    private fun server(transport: HttpTransport = UrlConnectionTransport(), body: suspend (CountingServer, SynheartAuth) -> Unit) =
        CountingServer().use { server ->
            val phone = MemoryPhone(server.url)
            val clock = TestClock()
            val auth = SynheartAuth(
                Configuration(
                    server.url, phone, phone, { throw AttestationException(AttestationException.Code.UNSUPPORTED) }, clock, transport,
                    sleeper = TestSleeper(clock), rotatesAutomatically = false,
                ),
            )
            runBlocking { body(server, auth) }
        }

    private fun CountingServer.request(method: String, vararg headers: Pair<String, String>) =
        HttpRequest(method, "$url/v1/x", headers.toList(), if (method == "POST") ByteArray(3) else ByteArray(0))

    @Test
    fun `a replayed write is not signed again, and a safe or keyed one is`() = server { server, auth ->
        server.fates.add(Fate.TWICE)
        val error = expect<SynheartAuthException.NonceReplay>(Recovery.NONE) { auth.send(MemoryPhone.APP, server.request("POST")) }
        assertTrue(error.mayHaveHappened)
        assertEquals(1, server.executions.get())
        for (request in listOf(server.request("GET"), server.request("DELETE"), server.request("POST", "idempotency-key" to "1"))) {
            server.fates.add(Fate.TWICE)
            val before = server.executions.get()
            assertEquals(200, auth.send(MemoryPhone.APP, request).status)
            assertEquals(2, server.executions.get() - before)
        }
    }

    @Test
    fun `a request for another origin is an error of the configuration that names it, and changes nothing`() = server { server, auth ->
        server.fates.add(Fate.MISDIRECTED)
        val error = expect<SynheartAuthException.ServerError>(Recovery.NONE) { auth.send(MemoryPhone.APP, server.request("POST")) }
        assertEquals("MISDIRECTED_REQUEST", error.code)
        assertTrue(error.message!!, server.url in error.message!!)
        assertFalse(error.mayHaveHappened)
        assertEquals(IdentityState.REGISTERED, auth.state(MemoryPhone.APP))
        assertEquals(1, server.requests.get())
    }

    @Test
    fun `a server that cannot be reached got nothing`() = runBlocking {
        val port = ServerSocket(0).use { it.localPort }
        val phone = MemoryPhone("http://127.0.0.1:$port")
        val auth = SynheartAuth(
            Configuration("http://127.0.0.1:$port", phone, phone, { throw AttestationException(AttestationException.Code.UNSUPPORTED) }, TestClock()),
        )
        val error = expect<SynheartAuthException.NetworkError>(Recovery.RETRY) {
            auth.send(MemoryPhone.APP, HttpRequest("POST", "http://127.0.0.1:$port/"))
        }
        assertFalse(error.mayHaveHappened)
    }

    @Test
    fun `an answered 429 or 5xx says that the request may have happened`() = server { server, auth ->
        for (fate in listOf(Fate.UNAVAILABLE, Fate.RATE_LIMITED)) {
            server.fates.add(fate)
            val status = auth.send(MemoryPhone.APP, server.request("POST")).status
            assertTrue("$status", status == 503 || status == 429)
        }
        assertEquals(2, server.requests.get())
    }

    @Test
    fun `X-Synheart-Error is read only from status 400 on`() {
        for ((status, isRead) in listOf(200 to false, 302 to false, 399 to false, 401 to true, 403 to true)) {
            val transport = HttpTransport { HttpResponse(status, listOf("X-Synheart-Error" to "MISDIRECTED_REQUEST")) }
            server(transport) { server, auth ->
                // `send` throws if a 401 or 403 has this code in `X-Synheart-Error`. Below status 400 it ignores the header field,
                // and returns the answer.
                val answer = runCatching { auth.send(MemoryPhone.APP, server.request("GET")) }
                assertEquals("$status", isRead, answer.isFailure)
            }
        }
    }

    @Test
    fun `cancelling is CancellationException, and never a network error`() {
        val started = CompletableDeferred<Unit>()
        val transport = HttpTransport {
            started.complete(Unit)
            awaitCancellation()
        }
        server(transport) { server, auth ->
            val outcome = supervisorScope {
                val call = async { auth.send(MemoryPhone.APP, server.request("POST")) }
                started.await()
                call.cancel()
                runCatching { call.await() }
            }
            assertTrue("$outcome", outcome.exceptionOrNull() is CancellationException)
        }
    }

    @Test
    fun `a process-wide Authenticator does not make the transport send a request twice`() {
        Authenticator.setDefault(object : Authenticator() {
            override fun getPasswordAuthentication() = PasswordAuthentication("a", "b".toCharArray())
        })
        try {
            server { server, auth ->
                server.fates.add(Fate.CHALLENGE)
                assertEquals(401, auth.send(MemoryPhone.APP, server.request("POST")).status)
                assertEquals(1, server.requests.get())
            }
        } finally {
            Authenticator.setDefault(null)
        }
    }

    @Test
    fun `an answer that is shorter than it says is an error, also as a stream`() = ServerSocket(0).use { listener ->
        val answers = listOf("200 OK" to "half", "200 OK" to "half", "404 Not Found" to "half", "200 OK" to "whole body", "304 Not Modified" to "", "200 OK" to "")
        Thread {
            for ((status, body) in answers) {
                listener.accept().use { socket ->
                    val head = socket.getInputStream().bufferedReader()
                    while (head.readLine().isNotEmpty()) continue
                    socket.getOutputStream().write("HTTP/1.1 $status\r\nContent-Length: 10\r\nConnection: close\r\n\r\n$body".toByteArray())
                }
            }
        }.apply { isDaemon = true }.start()
        val (transport, url) = UrlConnectionTransport() to "http://127.0.0.1:${listener.localPort}/"
        fun send(method: String = "GET", streams: Boolean = false) = runBlocking { transport.send(HttpRequest(method, url, streamsAnswer = streams)) }
        assertTrue(assertThrows(TransportException::class.java) { send() }.mayHaveArrived)
        assertThrows(java.io.EOFException::class.java) { send(streams = true).stream!!.use { it.readBytes() } }
        assertThrows(TransportException::class.java) { send() }
        assertEquals("whole body", String(send().body))
        // These answers have a `Content-Length`, but no body.
        assertEquals(304, send().status)
        assertEquals(200, send("HEAD").status)
    }

    @Test
    fun `an answer is bytes up to the limit of the call, or a stream`() {
        val bytes = ByteArray(5 * 1024 * 1024) { it.toByte() }
        val http = com.sun.net.httpserver.HttpServer.create(java.net.InetSocketAddress("127.0.0.1", 0), 0)
        http.createContext("/") { exchange ->
            exchange.sendResponseHeaders(200, bytes.size.toLong())
            try { exchange.responseBody.use { it.write(bytes) } } catch (_: java.io.IOException) {}
        }
        http.start()
        try {
            val url = "http://127.0.0.1:${http.address.port}/"
            val transport = UrlConnectionTransport()
            runBlocking {
                assertTrue(assertThrows(TransportException::class.java) { runBlocking { transport.send(HttpRequest("GET", url)) } }.isTooLarge)
                assertEquals(bytes.size, transport.send(HttpRequest("GET", url, maximumAnswer = bytes.size)).body.size)
                val answer = transport.send(HttpRequest("GET", url, maximumAnswer = 1, streamsAnswer = true))
                assertEquals(0, answer.body.size)
                assertTrue(bytes.contentEquals(answer.stream!!.use { it.readBytes() }))
                // Closing early does not read the rest of the body.
                transport.send(HttpRequest("GET", url, streamsAnswer = true)).stream!!.use { it.read() }
            }
        } finally {
            http.stop(0)
        }
    }
}
