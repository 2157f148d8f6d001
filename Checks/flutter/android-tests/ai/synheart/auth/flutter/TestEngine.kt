package ai.synheart.auth.flutter

import android.content.Context
import io.flutter.embedding.engine.plugins.FlutterPlugin
import io.flutter.plugin.common.BinaryMessenger
import io.flutter.plugin.common.MethodCall
import io.flutter.plugin.common.StandardMessageCodec
import io.flutter.plugin.common.StandardMethodCodec
import java.io.Closeable
import java.io.File
import java.nio.ByteBuffer
import java.nio.ByteOrder
import java.util.concurrent.BlockingQueue
import java.util.concurrent.CompletableFuture
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.Executors
import java.util.concurrent.Future
import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.RejectedExecutionException
import java.util.concurrent.TimeUnit
import org.junit.Assert.assertEquals
import org.junit.Assert.assertTrue

/** The reply that Dart gets for a call. */
internal sealed interface Answer {
    data class Success(val value: Any?) : Answer
    data class Failure(val code: String, val message: String?, val details: Any?) : Answer
    data object NotImplemented : Answer
}

/** An engine with the plugin: Dart's side of the channels, in bytes. Calls, replies and events are on one main thread. */
internal class TestEngine(client: AuthClient, configured: Configured = Configured()) : BinaryMessenger, Closeable {
    private val main = Executors.newSingleThreadExecutor { Thread(it, "main") }
    private val handlers = ConcurrentHashMap<String, BinaryMessenger.BinaryMessageHandler>()
    private val plugin = SynheartAuthPlugin(::post, configured) { client }
    private val binding = FlutterPlugin.FlutterPluginBinding(NoContext, this)

    /** The events of the states channel. */
    val events: BlockingQueue<Any> = LinkedBlockingQueue()

    init {
        onMain { plugin.onAttachedToEngine(binding) }
    }

    fun detach() = onMain { plugin.onDetachedFromEngine(binding) }

    override fun setMessageHandler(channel: String, handler: BinaryMessenger.BinaryMessageHandler?) {
        if (handler == null) handlers.remove(channel) else handlers[channel] = handler
    }

    override fun send(channel: String, message: ByteBuffer?) {
        assertEquals("main", Thread.currentThread().name)
        assertEquals(Contract.STATES, channel)
        val answer = answer(message)
        events.put((answer as Answer.Success).value!!)
    }

    /** Starts a call. A second reply fails the test. */
    fun start(method: String, arguments: Any?, channel: String = Contract.CALLS): Future<Answer> {
        val reply = CompletableFuture<Answer>()
        main.execute {
            val handler = handlers[channel]
            if (handler == null) {
                reply.complete(Answer.NotImplemented)
            } else {
                handler.onMessage(StandardMethodCodec.INSTANCE.encodeMethodCall(MethodCall(method, arguments)).also { it.rewind() }) {
                    if (Thread.currentThread().name != "main") reply.completeExceptionally(AssertionError("a reply off the main thread"))
                    if (!reply.complete(answer(it))) throw AssertionError("a second reply to $method")
                }
            }
        }
        return reply
    }

    fun call(method: String, arguments: Any?, channel: String = Contract.CALLS): Answer =
        start(method, arguments, channel).get(20, TimeUnit.SECONDS)

    fun listen() = assertEquals(Answer.Success(null), call("listen", null, Contract.STATES))

    /** Waits until the main thread has run the posted tasks. */
    fun settle() = onMain {}

    override fun close() {
        detach()
        main.shutdown()
        assertTrue(main.awaitTermination(20, TimeUnit.SECONDS))
    }

    /** Like Android's handler, accepts tasks even if no thread will run them any more. */
    private fun post(task: Runnable) {
        try {
            main.execute(task)
        } catch (_: RejectedExecutionException) {
            // The test has ended.
        }
    }

    private fun onMain(action: () -> Unit) {
        main.submit(action).get(20, TimeUnit.SECONDS)
    }

    private fun answer(bytes: ByteBuffer?): Answer {
        if (bytes == null) return Answer.NotImplemented
        bytes.rewind()
        bytes.order(ByteOrder.nativeOrder())
        // The envelope's first byte is 0 for a result and 1 for an error. The values follow it.
        val isError = bytes.get().toInt() == 1
        val values = Envelope.read(bytes, if (isError) 3 else 1)
        return if (isError) Answer.Failure(values[0] as String, values[1] as String?, values[2]) else Answer.Success(values[0])
    }
}

/**
 * Reads the values after an envelope's first byte, as if they were the elements of a list. None of this plugin's
 * replies has a double, which would need alignment.
 */
private object Envelope {
    fun read(bytes: ByteBuffer, count: Int): List<Any?> {
        val list = ByteBuffer.allocate(bytes.remaining() + 2).order(ByteOrder.nativeOrder())
        list.put(12).put(count.toByte()).put(bytes)
        list.flip()
        return StandardMessageCodec.INSTANCE.decodeMessage(list) as List<*>
    }
}

/** A context for the binding. The test's client does not use it. */
private object NoContext : Context() {
    override fun getApplicationContext(): Context = this
    override fun getPackageName(): String = "ai.synheart.test"
    override fun getNoBackupFilesDir(): File = error("the test's client needs no files")
    override fun getSystemService(name: String): Any = error("the test's client needs no services")
    override fun createDeviceProtectedStorageContext(): Context = this
    override fun isDeviceProtectedStorage(): Boolean = false
}
