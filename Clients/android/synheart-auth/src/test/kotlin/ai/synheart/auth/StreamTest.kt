package ai.synheart.auth

import ai.synheart.auth.wire.contentDigestOf
import ai.synheart.auth.wire.sha256
import java.io.ByteArrayInputStream
import java.io.ByteArrayOutputStream
import java.io.IOException
import java.io.OutputStream
import java.util.concurrent.CountDownLatch
import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicInteger
import kotlin.concurrent.thread
import kotlin.coroutines.CoroutineContext
import kotlin.time.Duration.Companion.minutes
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CompletableDeferred
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.SupervisorJob
import kotlinx.coroutines.async
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withContext
import org.junit.Assert.assertArrayEquals
import org.junit.Assert.assertEquals
import org.junit.Assert.assertFalse
import org.junit.Assert.assertThrows
import org.junit.Assert.assertTrue
import org.junit.Test

/** Bodies and answers that do not fit into memory. */
class StreamTest {
    private fun test(scheme: SignatureScheme = SignatureScheme.TWO, body: suspend (BodyServer, SynheartAuth) -> Unit) =
        BodyServer().use { server -> runBlocking { body(server, client(server.url, scheme)) } }

    private fun BodyServer.upload(body: StreamedBody, method: String = "POST") = HttpRequest(method, "$url/v1/x", streamedBody = body)

    private val leaving = CoroutineScope(SupervisorJob() + Dispatchers.Default)

    private fun CountDownLatch.expect(what: String) = assertTrue(what, await(20, TimeUnit.SECONDS))

    /** A source that writes the next body of a list at each call; after the end of the list, the last one. */
    private class Changing(private vararg val bodies: (OutputStream) -> Unit) : StreamedBody {
        val calls = AtomicInteger()
        override fun writeTo(output: OutputStream) = bodies[minOf(calls.getAndIncrement(), bodies.size - 1)](output)
    }

    private fun pieces(size: Int, fill: Int = 1): (OutputStream) -> Unit = { output ->
        val piece = ByteArray(10_000) { fill.toByte() }
        for (begin in 0 until size step piece.size) output.write(piece, 0, minOf(piece.size, size - begin))
    }

    private fun bytes(size: Int) = ByteArrayOutputStream().also(pieces(size)).toByteArray()

    @Test
    fun `a body and an answer of 100 MiB pass through a heap of 32 MiB`() = BodyServer().use { server ->
        server.answerSize = SIZE
        val java = ProcessBuilder(
            "${System.getProperty("java.home")}/bin/java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx32m",
            "-cp", System.getProperty("java.class.path"), "ai.synheart.auth.StreamTest", server.url,
        ).redirectErrorStream(true).start()
        val output = java.inputStream.bufferedReader().readText()
        assertEquals(output, 0, java.waitFor())
        assertEquals("200 $SIZE", output.trim())
        assertEquals(SIZE, server.executed.single().size)
    }

    @Test
    fun `the signature covers the digest of what is sent, from one byte to several pieces`() = test { server, auth ->
        for (size in listOf(0, 1, 9_999, 10_000, 25_000)) {
            server.executed.clear()
            assertEquals(200, auth.send(MemoryPhone.APP, server.upload(Changing(pieces(size)))).status)
            val received = server.executed.single()
            assertEquals(size.toLong(), received.size)
            assertArrayEquals(sha256(bytes(size)), received.digest)
            assertEquals(contentDigestOf(received.digest), received.headers["content-digest"])
        }
    }

    @Test
    fun `the service verifies a streamed body, and refuses another one`() =
        World.run(edits = arrayOf("signature.authorities" to listOf("https://api.example.com"))) {
            register()
            val credential = service.backendCredential(appId)
            val network = phone.network
            var isChanged = false
            phone.network = { request, send ->
                if (request.url.startsWith("https://api.example.com")) {
                    val body = ByteArrayOutputStream().also(request.streamedBody!!::writeTo).toByteArray()
                    assertEquals(body.size.toLong(), request.bodySize)
                    if (isChanged) body[0] = 0
                    service.verify(HttpRequest(request.method, request.url, request.headers, body), credential)
                } else {
                    network(request, send)
                }
            }
            val client = SynheartAuth(phone.configuration(origins = setOf("https://api.example.com"), scheme = SignatureScheme.TWO))
            val request = HttpRequest("POST", "https://api.example.com/v1/x", streamedBody = Changing(pieces(25_000)))
            assertEquals(200, client.send(appId, request).status)
            isChanged = true
            assertEquals("INVALID_SIGNATURE", client.send(appId, request).header("X-Synheart-Error"))
        }

    @Test
    fun `a refused copy is sent again with the same body, and executed once`() = test { server, auth ->
        server.refusals.add("CLOCK_SKEW")
        val source = Changing(pieces(25_000))
        assertEquals(200, auth.send(MemoryPhone.APP, server.upload(source)).status)
        assertEquals(2, server.heads.get())
        assertEquals(1, server.executed.size)
        // The source was read once for the digest, and once for each of the two copies.
        assertEquals(3, source.calls.get())
    }

    @Test
    fun `a body that changed between two reads never arrives completely`() {
        val changes = mapOf<String, (OutputStream) -> Unit>(
            "other bytes" to pieces(25_000, 2), "a byte less" to pieces(24_999), "a byte more" to pieces(25_001), "nothing" to {},
            "a failure at the end" to { pieces(25_000)(it); throw IOException("closed") },
            "a failure in the middle" to { pieces(10_000)(it); throw IOException("gone") },
            "a failure that is no IOException" to { throw IllegalStateException("closed") },
            "an error that the source hides" to { runCatching { pieces(50_000)(it) } },
        )
        for ((what, change) in changes) test { server, auth ->
            val source = Changing(pieces(25_000), change)
            val error = expect<SynheartAuthException.SigningFailed>(Recovery.NONE) { auth.send(MemoryPhone.APP, server.upload(source)) }
            assertTrue(what, error.mayHaveHappened)
            assertEquals(what, 2, source.calls.get())
            server.wasLeft.expect(what)
            assertEquals(what, 0, server.executed.size)
        }
        // The server refuses the first copy, and the second copy has other bytes.
        test { server, auth ->
            server.refusals.add("CLOCK_SKEW")
            val source = Changing(pieces(25_000), pieces(25_000), pieces(25_000, 2))
            val error = expect<SynheartAuthException.SigningFailed>(Recovery.NONE) { auth.send(MemoryPhone.APP, server.upload(source)) }
            assertTrue(error.mayHaveHappened)
            server.wasLeft.expect("the second copy ends")
            assertEquals(0, server.executed.size)
        }
    }

    @Test
    fun `a body that cannot be read leaves nothing behind`() = test { server, auth ->
        for (source in listOf(Changing({ throw IOException("gone") }), Changing({ throw SecurityException("no permission") }))) {
            val error = expect<SynheartAuthException.SigningFailed>(Recovery.NONE) { auth.send(MemoryPhone.APP, server.upload(source)) }
            assertFalse(error.mayHaveHappened)
            expect<SynheartAuthException.SigningFailed>(Recovery.NONE) { auth.sign(MemoryPhone.APP, "POST", "${server.url}/", source) }
        }
        // A GET must not have a body.
        val error = expect<SynheartAuthException.SigningFailed>(Recovery.NONE) {
            auth.send(MemoryPhone.APP, server.upload(Changing(pieces(1)), "GET"))
        }
        assertFalse(error.mayHaveHappened)
        assertEquals(0, server.heads.get())
    }

    @Test
    fun `an Error of a source reaches the caller`() {
        val fails = { _: OutputStream -> throw StackOverflowError("deep") }
        for (source in listOf(Changing(fails), Changing(pieces(25_000), fails))) test { server, auth ->
            assertThrows(StackOverflowError::class.java) { runBlocking { auth.send(MemoryPhone.APP, server.upload(source)) } }
            assertEquals(0, server.executed.size)
        }
    }

    @Test
    fun `scheme 1 signs no streamed body, and does not read it`() = test(SignatureScheme.ONE) { server, auth ->
        val source = Changing(pieces(1))
        val error = expect<SynheartAuthException.SigningFailed>(Recovery.NONE) { auth.send(MemoryPhone.APP, server.upload(source)) }
        assertFalse(error.mayHaveHappened)
        assertTrue(error.message!!, "SignatureScheme.TWO" in error.message!!)
        expect<SynheartAuthException.SigningFailed>(Recovery.NONE) { auth.sign(MemoryPhone.APP, "POST", "${server.url}/", source) }
        assertEquals(0, source.calls.get())
        assertEquals(0, server.heads.get())
    }

    @Test
    fun `sign covers the digest of a streamed body`() = test { server, auth ->
        val headers = auth.sign(MemoryPhone.APP, "POST", "${server.url}/v1/x", Changing(pieces(25_000)))
        assertEquals(contentDigestOf(sha256(bytes(25_000))), headers["Content-Digest"])
        expect<SynheartAuthException.SigningFailed>(Recovery.NONE) {
            auth.sign(MemoryPhone.APP, "POST", "${server.url}/auth/v1/device/rotate-key", Changing(pieces(1)))
        }
    }

    @Test
    fun `a caller that leaves while the body is sent ends the request`() = test { server, auth ->
        server.stalls = true
        val ended = CountDownLatch(1)
        // This is more than the buffers of a connection hold, so that the write waits for the server.
        val size = 64 * 1024 * 1024
        val big = Changing(pieces(size), { output -> try { pieces(size)(output) } finally { ended.countDown() } })
        val call = leaving.async { auth.send(MemoryPhone.APP, server.upload(big)) }
        withContext(Dispatchers.IO) { server.hasBegun.expect("the body begins") }
        call.cancelAndJoin()
        assertTrue(runCatching { call.await() }.exceptionOrNull() is CancellationException)
        withContext(Dispatchers.IO) { ended.expect("the source ends") }
        server.goesOn.countDown()
        withContext(Dispatchers.IO) { server.wasLeft.expect("the connection ends") }
        assertEquals(0, server.executed.size)
    }

    @Test
    fun `a caller that leaves while the body is read for its digest ends the reading`() = test { server, auth ->
        val begun = CountDownLatch(1)
        val ended = CountDownLatch(1)
        val endless = StreamedBody { output ->
            try {
                while (true) {
                    output.write(ByteArray(1_000))
                    begun.countDown()
                }
            } finally {
                ended.countDown()
            }
        }
        val call = leaving.async { auth.send(MemoryPhone.APP, server.upload(endless)) }
        withContext(Dispatchers.IO) { begun.expect("reading begins") }
        call.cancelAndJoin()
        withContext(Dispatchers.IO) { ended.expect("reading ends") }
        assertEquals(0, server.heads.get())
    }

    @Test
    fun `an answer above the call's limit is an error that says the request may have happened`() = test { server, auth ->
        server.answerSize = 5L * 1024 * 1024
        fun request(limit: Int?, body: StreamedBody) =
            if (limit == null) server.upload(body) else HttpRequest("POST", "${server.url}/v1/x", streamedBody = body, maximumAnswer = limit)
        for (limit in listOf(null, 0, server.answerSize.toInt() - 1)) {
            val before = server.executed.size
            val error = expect<SynheartAuthException.AnswerTooLarge>(Recovery.NONE) {
                auth.send(MemoryPhone.APP, request(limit, Changing(pieces(25_000))))
            }
            assertTrue(error.mayHaveHappened)
            assertEquals(before + 1, server.executed.size)
        }
        assertEquals(5 * 1024 * 1024, auth.send(MemoryPhone.APP, request(5 * 1024 * 1024, Changing(pieces(1)))).body.size)
    }

    @Test
    fun `closing a streamed answer ends the connection and a read that waits`() = test { server, auth ->
        server.answerSize = Long.MAX_VALUE
        val answer = auth.send(MemoryPhone.APP, HttpRequest("GET", "${server.url}/v1/x", streamsAnswer = true))
        val ended = CountDownLatch(1)
        val hasRead = CountDownLatch(1)
        thread(isDaemon = true) {
            runCatching { while (answer.stream!!.read(ByteArray(64 * 1024)) >= 0) hasRead.countDown() }
            ended.countDown()
        }
        withContext(Dispatchers.IO) {
            hasRead.expect("an answer")
            answer.stream!!.close()
            ended.expect("the read ends")
            server.wasLeft.expect("the connection ends")
        }
    }

    @Test
    fun `a streamed answer whose caller has left is closed`() {
        val started = CompletableDeferred<Unit>()
        val gate = CompletableDeferred<Unit>()
        val closed = CountDownLatch(1)
        val stream = object : ByteArrayInputStream(ByteArray(1)) {
            override fun close() = closed.countDown()
        }
        val transport = HttpTransport {
            started.complete(Unit)
            withContext(NonCancellable) { gate.await() }
            HttpResponse(200, stream = stream)
        }
        test { server, auth ->
            val request = HttpRequest("GET", "${server.url}/v1/x", streamsAnswer = true)
            val call = leaving.async { auth.send(MemoryPhone.APP, request, transport = transport) }
            started.await()
            call.cancelAndJoin()
            gate.complete(Unit)
            withContext(Dispatchers.IO) { closed.expect("the stream is closed") }
        }
    }

    /** Resumes callers when the test says so. */
    private class Held : CoroutineDispatcher() {
        val tasks = LinkedBlockingQueue<Runnable>()
        override fun dispatch(context: CoroutineContext, block: Runnable) = tasks.put(block)
    }

    /** Cancels a caller after its answer came, but before the caller resumes. */
    private fun leaveWithAnswer(gate: CountDownLatch, send: suspend () -> HttpResponse) {
        val held = Held()
        // `send` runs until it waits for the answer. Then the gate lets the answer come.
        val call = CoroutineScope(held).async(start = CoroutineStart.UNDISPATCHED) { send() }
        gate.countDown()
        val resumption = checkNotNull(held.tasks.poll(20, TimeUnit.SECONDS))
        call.cancel()
        resumption.run()
        while (true) (held.tasks.poll() ?: break).run()
        assertTrue(call.isCancelled)
    }

    @Test
    fun `a streamed answer is closed if its caller leaves at the moment when it comes`() {
        test { server, auth ->
            val gate = CountDownLatch(1)
            val closed = CountDownLatch(1)
            val stream = object : ByteArrayInputStream(ByteArray(1)) {
                override fun close() = closed.countDown()
            }
            val transport = HttpTransport {
                withContext(Dispatchers.IO) { gate.await() }
                HttpResponse(200, stream = stream)
            }
            leaveWithAnswer(gate) { auth.send(MemoryPhone.APP, HttpRequest("GET", "${server.url}/"), transport = transport) }
            closed.expect("the stream is closed")
        }
        test { server, _ ->
            server.answerSize = Long.MAX_VALUE
            val gate = CountDownLatch(1)
            val request = HttpRequest("POST", "${server.url}/", streamedBody = { gate.await() }, streamsAnswer = true)
            leaveWithAnswer(gate) { UrlConnectionTransport().send(request) }
            server.wasLeft.expect("the connection ends")
        }
    }

    @Test
    fun `a streamed answer is closed if its caller leaves while the record is written`() {
        val writes = CountDownLatch(1)
        val goesOn = CountDownLatch(1)
        val closed = CountDownLatch(1)
        val stream = object : ByteArrayInputStream(ByteArray(1)) {
            override fun close() = closed.countDown()
        }
        val phone = MemoryPhone("http://127.0.0.1:1")
        val slow = object : RecordStorage by phone {
            override fun write(name: String, bytes: ByteArray) {
                writes.countDown()
                goesOn.await()
                phone.write(name, bytes)
            }
        }
        val auth = client("http://127.0.0.1:1", SignatureScheme.TWO, phone, slow)
        runBlocking {
            // The first answer under scheme 2 raises the scheme floor (the lowest scheme to sign under), so the client writes the record.
            val call = leaving.async { auth.send(MemoryPhone.APP, HttpRequest("GET", "http://127.0.0.1:1/"), transport = { HttpResponse(200, stream = stream) }) }
            withContext(Dispatchers.IO) { writes.expect("the record is written") }
            call.cancelAndJoin()
            withContext(Dispatchers.IO) { closed.expect("the stream is closed") }
            goesOn.countDown()
        }
    }

    @Test
    fun `without the client the transport sends a body of unknown size in chunks`() {
        val http = com.sun.net.httpserver.HttpServer.create(java.net.InetSocketAddress("127.0.0.1", 0), 0)
        http.createContext("/") { exchange ->
            val body = exchange.requestBody.readBytes()
            exchange.sendResponseHeaders(200, body.size.toLong())
            exchange.responseBody.use { it.write(body) }
        }
        http.start()
        try {
            val request = HttpRequest("POST", "http://127.0.0.1:${http.address.port}/", streamedBody = Changing(pieces(25_000)))
            assertArrayEquals(bytes(25_000), runBlocking { UrlConnectionTransport().send(request) }.body)
        } finally {
            http.stop(0)
        }
    }

    internal companion object {
        const val SIZE = 100L * 1024 * 1024

        fun client(
            url: String, scheme: SignatureScheme, phone: MemoryPhone = MemoryPhone(url), storage: RecordStorage = phone,
        ): SynheartAuth {
            val clock = TestClock()
            return SynheartAuth(
                Configuration(
                    url, phone, storage, { throw AttestationException(AttestationException.Code.UNSUPPORTED) }, clock,
                    sleeper = TestSleeper(clock), rotatesAutomatically = false, scheme = scheme,
                ),
            )
        }

        /** Runs in another process, which has little memory. */
        @JvmStatic
        fun main(arguments: Array<String>) {
            val piece = ByteArray(64 * 1024) { it.toByte() }
            val body = StreamedBody { output -> for (begin in 0 until SIZE step piece.size.toLong()) output.write(piece) }
            val request = HttpRequest("POST", "${arguments[0]}/v1/x", streamedBody = body, deadline = 10.minutes, streamsAnswer = true)
            val answer = runBlocking { client(arguments[0], SignatureScheme.TWO).send(MemoryPhone.APP, request) }
            var count = 0L
            answer.stream!!.use { stream -> generateSequence { stream.read(piece) }.takeWhile { it >= 0 }.forEach { count += it } }
            println("${answer.status} $count")
            kotlin.system.exitProcess(0)
        }
    }
}
