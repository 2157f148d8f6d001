package ai.synheart.auth

import java.io.BufferedInputStream
import java.io.Closeable
import java.io.IOException
import java.io.InputStream
import java.net.InetAddress
import java.net.ServerSocket
import java.net.Socket
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.ConcurrentLinkedQueue
import java.util.concurrent.atomic.AtomicInteger
import kotlin.concurrent.thread

/**
 * A backend that accepts each nonce once, and counts the requests that it executes. A test chooses the fate of requests and
 * connections.
 */
internal class CountingServer : Closeable {
    /** The fate of one request. */
    enum class Fate {
        /** Executed and answered. */
        ANSWER,

        /** Executed and answered, and the connection ends without notice: the next request on it fails. */
        ANSWER_AND_CLOSE,

        /** The connection ends before the request was read. */
        CLOSE_BEFORE,

        /** The connection ends after the request was executed. */
        CLOSE_AFTER,

        /** The connection ends in the middle of the answer. */
        CUT_ANSWER,

        /** A proxy sends the request twice, and passes on the second answer. */
        TWICE,

        /** A proxy sends the request twice, and the connection ends. */
        TWICE_AND_CLOSE,

        // The server does not execute the request.
        CHALLENGE, REDIRECT, UNAVAILABLE, TIMEOUT, SKEW, MISDIRECTED, RATE_LIMITED,
    }

    private val listener = ServerSocket(0, 50, InetAddress.getLoopbackAddress())
    val url = "http://127.0.0.1:${listener.localPort}"
    private val nonces = ConcurrentHashMap.newKeySet<String>()
    private val sockets = ConcurrentHashMap.newKeySet<Socket>()

    /** The fates of the next requests; without an entry they are answered. */
    val fates = ConcurrentLinkedQueue<Fate>()
    val executions = AtomicInteger()
    val requests = AtomicInteger()

    /** How many redirects were followed. */
    val followed = AtomicInteger()

    init {
        thread(isDaemon = true) {
            while (!listener.isClosed) {
                val socket = try { listener.accept() } catch (_: IOException) { break }
                sockets.add(socket)
                thread(isDaemon = true) { serve(socket) }
            }
        }
    }

    private fun serve(socket: Socket) = try {
        socket.use {
            socket.tcpNoDelay = true
            val input = BufferedInputStream(socket.getInputStream())
            while (true) if (!serveOne(socket, input)) break
        }
    } catch (_: IOException) {
    } finally {
        sockets.remove(socket)
    }

    /** Returns whether the connection continues. */
    private fun serveOne(socket: Socket, input: InputStream): Boolean {
        input.mark(1)
        if (input.read() < 0) return false
        input.reset()
        val fate = fates.poll() ?: Fate.ANSWER
        if (fate == Fate.CLOSE_BEFORE) return false
        val head = generateSequence { line(input) }.takeWhile { it.isNotEmpty() }.toList()
        if (head.isEmpty()) return false
        val headers = head.drop(1).associate { it.substringBefore(':').lowercase() to it.substringAfter(':').trim() }
        repeat(headers["content-length"]?.toInt() ?: 0) { if (input.read() < 0) return false }
        requests.incrementAndGet()
        if (head[0].split(' ')[1] == ELSEWHERE) followed.incrementAndGet()
        val nonce = headers["x-synheart-nonce"] ?: headers.getValue("signature-input").substringAfter(";nonce=\"").substringBefore('"')
        val answer = when (fate) {
            Fate.CHALLENGE -> text(401, "{}", "WWW-Authenticate: Basic realm=\"x\"")
            Fate.REDIRECT -> text(307, "", "Location: $url$ELSEWHERE")
            Fate.UNAVAILABLE -> text(503, "", "Retry-After: 0")
            Fate.TIMEOUT -> text(408, "", "Retry-After: 0")
            Fate.SKEW -> refused(401, "CLOCK_SKEW", System.currentTimeMillis() / 1000 + 100)
            Fate.MISDIRECTED -> refused(421, "MISDIRECTED_REQUEST")
            Fate.RATE_LIMITED -> refused(429, "RATE_LIMITED")
            Fate.TWICE, Fate.TWICE_AND_CLOSE -> {
                accept(nonce)
                accept(nonce)
            }
            else -> accept(nonce)
        }
        val output = socket.getOutputStream()
        when (fate) {
            Fate.CLOSE_AFTER, Fate.TWICE_AND_CLOSE -> return false
            Fate.CUT_ANSWER -> {
                output.write(answer.copyOf(answer.size / 2))
                return false
            }
            else -> output.write(answer)
        }
        return fate != Fate.ANSWER_AND_CLOSE
    }

    private fun accept(nonce: String): ByteArray {
        if (!nonces.add(nonce)) return refused(409, "NONCE_REPLAY")
        executions.incrementAndGet()
        return text(200, "{\"done\":true}")
    }

    private fun refused(status: Int, code: String, time: Long = System.currentTimeMillis() / 1000) = text(
        status, """{"error":"$code","message":"m","request_id":"r","server_timestamp":$time}""", "X-Synheart-Error: $code",
        "X-Synheart-Server-Time: $time",
    )

    private fun text(status: Int, body: String, vararg headers: String): ByteArray =
        (listOf("HTTP/1.1 $status x", "Content-Length: ${body.length}") + headers).joinToString("\r\n", postfix = "\r\n\r\n$body").toByteArray()

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
        listener.close()
        sockets.forEach { it.close() }
    }

    private companion object {
        const val ELSEWHERE = "/elsewhere"
    }
}
