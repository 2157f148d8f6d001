package ai.synheart.auth

import java.io.BufferedInputStream
import java.io.Closeable
import java.io.IOException
import java.io.InputStream
import java.net.InetAddress
import java.net.ServerSocket
import java.net.Socket
import java.security.MessageDigest
import java.util.concurrent.ConcurrentLinkedQueue
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.CountDownLatch
import java.util.concurrent.atomic.AtomicInteger
import kotlin.concurrent.thread

/**
 * A backend that reads bodies in pieces, and executes each request whose body arrived completely. It does not compare digests:
 * clients must detect a changed body.
 */
internal class BodyServer : Closeable {
    /** A request whose whole body arrived. */
    class Received(val headers: Map<String, String>, val size: Long, val digest: ByteArray)

    private val listener = ServerSocket(0, 50, InetAddress.getLoopbackAddress())
    val url = "http://127.0.0.1:${listener.localPort}"
    val executed = CopyOnWriteArrayList<Received>()

    /** The number of requests that began to arrive. */
    val heads = AtomicInteger()

    /** Codes for the next complete requests, which are refused before they are executed. */
    val refusals = ConcurrentLinkedQueue<String>()

    /** The number of bytes in an answer's body. Each byte is zero. */
    @Volatile
    var answerSize = 0L

    /** Whether the server stops reading after the first piece of a body. */
    @Volatile
    var stalls = false

    /** A stalled server continues when this is released. */
    val goesOn = CountDownLatch(1)

    /** Released when a piece of a body has arrived. */
    val hasBegun = CountDownLatch(1)

    /** Released when a client ended its connection before its body was complete, or before it had the complete answer. */
    val wasLeft = CountDownLatch(1)

    init {
        thread(isDaemon = true) {
            while (!listener.isClosed) {
                val socket = try { listener.accept() } catch (_: IOException) { break }
                thread(isDaemon = true) { serve(socket) }
            }
        }
    }

    private fun serve(socket: Socket) = try {
        socket.use {
            val input = BufferedInputStream(it.getInputStream())
            while (serveOne(it, input)) Unit
        }
    } catch (_: IOException) {
        wasLeft.countDown()
    }

    /** Returns whether the connection continues. */
    private fun serveOne(socket: Socket, input: InputStream): Boolean {
        val head = generateSequence { line(input) }.takeWhile { it.isNotEmpty() }.toList()
        if (head.isEmpty()) return false
        heads.incrementAndGet()
        val headers = head.drop(1).associate { it.substringBefore(':').lowercase() to it.substringAfter(':').trim() }
        val hash = MessageDigest.getInstance("SHA-256")
        val size = headers["content-length"]?.toLong() ?: 0
        val piece = ByteArray(64 * 1024)
        var rest = size
        while (rest > 0) {
            val count = input.read(piece, 0, minOf(rest, piece.size.toLong()).toInt())
            if (count < 0) throw IOException("the body ended early")
            hash.update(piece, 0, count)
            rest -= count
            hasBegun.countDown()
            // Waits until the test releases the server. The bytes that the client writes meanwhile fill the connection.
            if (stalls) goesOn.await()
        }
        val code = refusals.poll()
        if (code == null) executed.add(Received(headers, size, hash.digest()))
        val time = System.currentTimeMillis() / 1000 + if (code == "CLOCK_SKEW") 100 else 0
        val body = code?.let { """{"error":"$it","message":"m","request_id":"r","server_timestamp":$time}""" }
        val output = socket.getOutputStream()
        val lines = listOfNotNull(
            if (code == null) "HTTP/1.1 200 OK" else "HTTP/1.1 401 x", "Content-Length: ${body?.length ?: answerSize}",
            code?.let { "X-Synheart-Error: $it" }, "X-Synheart-Server-Time: $time",
        )
        output.write(lines.joinToString("\r\n", postfix = "\r\n\r\n${body.orEmpty()}").toByteArray())
        if (code != null) return true
        piece.fill(0)
        var left = answerSize
        while (left > 0) {
            val count = minOf(left, piece.size.toLong()).toInt()
            output.write(piece, 0, count)
            left -= count
        }
        return true
    }

    private fun line(input: InputStream): String? {
        val line = StringBuilder()
        while (true) {
            val byte = input.read()
            if (byte < 0) return null
            if (byte == '\n'.code) return line.toString().trimEnd('\r')
            line.append(byte.toChar())
        }
    }

    override fun close() {
        goesOn.countDown()
        listener.close()
    }
}
