package ai.synheart.auth.okhttp

import ai.synheart.auth.BodyServer
import ai.synheart.auth.MemoryPhone
import ai.synheart.auth.SignatureScheme
import ai.synheart.auth.StreamTest
import ai.synheart.auth.SynheartAuthException
import ai.synheart.auth.wire.contentDigestOf
import java.io.IOException
import java.net.Socket
import java.net.URI
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicInteger
import kotlin.time.Duration.Companion.minutes
import okhttp3.Call
import okhttp3.Headers
import okhttp3.HttpUrl
import okhttp3.MediaType
import okhttp3.Network
import okhttp3.OkHttpClient
import okhttp3.Request
import okhttp3.RequestBody
import okhttp3.Response
import okio.BufferedSink
import okio.buffer
import okio.sink
import org.junit.Assert.assertEquals
import org.junit.Assert.assertThrows
import org.junit.Assert.assertTrue
import org.junit.Test

/** Bodies of OkHttp's requests that do not fit into memory. */
class OkHttpStreamTest {
    /** Writes the next body of a list at each call; after the end of the list, the last one. */
    private class Body(private val isOneShot: Boolean, private vararg val writes: (BufferedSink) -> Unit) : RequestBody() {
        val calls = AtomicInteger()
        override fun contentType(): MediaType? = null
        override fun isOneShot() = isOneShot
        override fun writeTo(sink: BufferedSink) = writes[minOf(calls.getAndIncrement(), writes.size - 1)](sink)
    }

    private fun bytes(size: Int, fill: Int = 1): (BufferedSink) -> Unit = { sink -> sink.write(ByteArray(size) { fill.toByte() }) }

    @Test
    fun `a body of 100 MiB passes through a heap of 32 MiB`() = BodyServer().use { server ->
        val java = ProcessBuilder(
            "${System.getProperty("java.home")}/bin/java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx32m",
            "-cp", System.getProperty("java.class.path"), "ai.synheart.auth.okhttp.OkHttpStreamTest", server.url,
        ).redirectErrorStream(true).start()
        val output = java.inputStream.bufferedReader().readText()
        assertEquals(output, 0, java.waitFor())
        assertEquals("200", output.trim())
        val received = server.executed.single()
        assertEquals(StreamTest.SIZE, received.size)
        assertEquals(contentDigestOf(received.digest), received.headers["content-digest"])
    }

    @Test
    fun `under scheme 2 a body is written twice, and a one-shot body once`() = BodyServer().use { server ->
        for ((scheme, isOneShot, calls) in listOf(
            Triple(SignatureScheme.TWO, false, 2), Triple(SignatureScheme.TWO, true, 1), Triple(SignatureScheme.ONE, false, 1),
        )) {
            server.executed.clear()
            val body = Body(isOneShot, bytes(25_000))
            assertEquals(200, client(server.url, scheme).newCall(request(server.url, body)).execute().code)
            assertEquals(calls, body.calls.get())
            assertEquals(25_000L, server.executed.single().size)
        }
    }

    @Test
    fun `a duplex body is refused, and never written`() = BodyServer().use { server ->
        for (scheme in SignatureScheme.entries) {
            val body = object : RequestBody() {
                override fun contentType(): MediaType? = null
                override fun isDuplex() = true
                override fun writeTo(sink: BufferedSink) = throw AssertionError("written")
            }
            val error = assertThrows(SynheartAuthIOException::class.java) { client(server.url, scheme).newCall(request(server.url, body)).execute() }.error
            assertTrue("$error", error is SynheartAuthException.SigningFailed && !error.mayHaveHappened)
        }
        assertEquals(0, server.executed.size)
    }

    @Test
    fun `a refused copy is sent again with the same body, and executed once`() = BodyServer().use { server ->
        server.refusals.add("CLOCK_SKEW")
        val body = Body(false, bytes(25_000))
        assertEquals(200, client(server.url, SignatureScheme.TWO).newCall(request(server.url, body)).execute().code)
        assertEquals(3, body.calls.get())
        assertEquals(1, server.executed.size)
    }

    @Test
    fun `a body that changed between two reads never arrives completely`() {
        val longer = { sink: BufferedSink -> bytes(25_000)(sink).also { bytes(1)(sink) } }
        val changes = listOf(bytes(25_000, 2), bytes(24_999), longer, { sink -> bytes(10_000)(sink).also { throw IOException("gone") } })
        for ((index, change) in changes.withIndex()) BodyServer().use { server ->
            val call = client(server.url, SignatureScheme.TWO).newCall(request(server.url, Body(false, bytes(25_000), change)))
            val error = assertThrows(SynheartAuthIOException::class.java) { call.execute() }.error
            assertTrue("$index: $error", error is SynheartAuthException.SigningFailed && error.mayHaveHappened)
            assertTrue("$index", server.wasLeft.await(20, TimeUnit.SECONDS))
            assertEquals("$index", 0, server.executed.size)
        }
    }

    internal companion object {
        /** Writes each body to a socket, piece by piece. */
        private val sockets = object : Network {
            override fun connect(call: Call) = object : Network.Connection {
                override val hasAnotherRoute = true
                override fun exchange(request: Request): Response {
                    val url = URI(request.url.toString())
                    return Socket(url.host, url.port).use { send(it, url, request) }
                }
            }

            private fun send(socket: Socket, url: URI, request: Request): Response {
                val body = checkNotNull(request.body)
                val lines = listOf("${request.method} ${url.rawPath} HTTP/1.1", "Host: ${url.authority}", "Content-Length: ${body.contentLength()}") +
                    List(request.headers.size) { "${request.headers.name(it)}: ${request.headers.value(it)}" }
                val sink = socket.getOutputStream().sink().buffer()
                sink.write(lines.joinToString("\r\n", postfix = "\r\n\r\n").toByteArray())
                body.writeTo(sink)
                sink.flush()
                val input = socket.getInputStream().bufferedReader(Charsets.ISO_8859_1)
                val status = (input.readLine() ?: throw IOException("unexpected end of stream")).split(" ")[1].toInt()
                val head = generateSequence { input.readLine() }.takeWhile { it.isNotEmpty() }.toList()
                val headers = Headers.Builder().apply { for (line in head) add(line.substringBefore(':'), line.substringAfter(": ")) }
                val length = head.first { it.startsWith("Content-Length: ") }.substringAfter(": ").toInt()
                return Response(request, status, headers.build(), CharArray(length).also { input.read(it) }.concatToString().toByteArray())
            }
        }

        private fun client(url: String, scheme: SignatureScheme): OkHttpClient =
            OkHttpClient.Builder().addSynheartAuth(StreamTest.client(url, scheme), MemoryPhone.APP, scheme, 10.minutes).apply { network = sockets }.build()

        private fun request(url: String, body: RequestBody) = Request(HttpUrl("$url/v1/x"), "POST", Headers.Builder().build(), body)

        /** Runs in another process, which has little memory. */
        @JvmStatic
        fun main(arguments: Array<String>) {
            val piece = ByteArray(64 * 1024) { it.toByte() }
            val body = Body(false, { sink -> for (begin in 0 until StreamTest.SIZE step piece.size.toLong()) sink.write(piece) })
            println(client(arguments[0], SignatureScheme.TWO).newCall(request(arguments[0], body)).execute().code)
            kotlin.system.exitProcess(0)
        }
    }
}
