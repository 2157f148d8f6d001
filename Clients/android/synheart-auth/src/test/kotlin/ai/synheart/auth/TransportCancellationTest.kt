package ai.synheart.auth

import java.io.IOException
import java.net.InetAddress
import java.net.Proxy
import java.net.ProxySelector
import java.net.ServerSocket
import java.net.Socket
import java.net.SocketAddress
import java.net.URI
import java.util.concurrent.CountDownLatch
import kotlin.coroutines.CoroutineContext
import kotlinx.coroutines.CoroutineDispatcher
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import org.junit.Assert.assertEquals
import org.junit.Assert.assertTrue
import org.junit.Test

/** A caller leaves before its request is sent. */
class TransportCancellationTest {
    /** Runs dispatched tasks when the test says so. */
    private class Held : CoroutineDispatcher() {
        private val tasks = ArrayDeque<Runnable>()

        override fun dispatch(context: CoroutineContext, block: Runnable) {
            synchronized(tasks) { tasks.addLast(block) }
        }

        /** Runs the first task, and all that follow. */
        fun runAll() {
            while (true) (synchronized(tasks) { tasks.removeFirstOrNull() } ?: return).run()
        }
    }

    private val leaving = CoroutineScope(Dispatchers.Default)
    private val methods = listOf("DELETE" to ByteArray(0), "POST" to ByteArray(10) { 'x'.code.toByte() })

    private fun test(body: suspend (server: ServerSocket, request: HttpRequest, held: Held) -> Unit) = methods.forEach { (method, bytes) ->
        ServerSocket(0, 0, InetAddress.getLoopbackAddress()).use { server ->
            server.soTimeout = 20_000
            runBlocking { body(server, HttpRequest(method, "http://127.0.0.1:${server.localPort}/", body = bytes), Held()) }
        }
    }

    @Test
    fun `a caller that leaves before the connection is made sends nothing`() = test { server, request, held ->
        val transport = UrlConnectionTransport(held)
        val caller = leaving.launch(start = CoroutineStart.UNDISPATCHED) { transport.send(request) }
        caller.cancelAndJoin()
        held.runAll()
        // The next connection is the test's own, so the transport has made none.
        Socket(server.inetAddress, server.localPort).use { own ->
            server.accept().use { assertEquals(own.localPort, it.port) }
        }
    }

    @Test
    fun `a caller that leaves while the connection is made sends no byte`() = test { server, request, held ->
        val transport = UrlConnectionTransport(held)
        val caller = leaving.launch(start = CoroutineStart.UNDISPATCHED) { transport.send(request) }
        val before = ProxySelector.getDefault()
        var selections = 0
        ProxySelector.setDefault(object : ProxySelector() {
            override fun select(uri: URI): List<Proxy> {
                if (uri.port == server.localPort) {
                    selections++
                    caller.cancel()
                }
                return listOf(Proxy.NO_PROXY)
            }

            override fun connectFailed(uri: URI, address: SocketAddress, error: IOException) = Unit
        })
        val received = CountDownLatch(1)
        var first = 0
        val peer = Thread {
            first = server.accept().use {
                it.soTimeout = 20_000
                it.getInputStream().read()
            }
            received.countDown()
        }.apply { start() }
        try {
            held.runAll()
        } finally {
            ProxySelector.setDefault(before)
        }
        received.await()
        peer.join()
        assertTrue(selections > 0)
        assertEquals("the first byte, or the end", -1, first)
        caller.join()
        assertTrue(caller.isCancelled)
    }
}
