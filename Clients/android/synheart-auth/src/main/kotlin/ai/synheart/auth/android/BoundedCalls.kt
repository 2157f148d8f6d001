package ai.synheart.auth.android

import java.util.concurrent.ExecutionException
import java.util.concurrent.FutureTask
import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.ThreadPoolExecutor
import java.util.concurrent.TimeUnit
import java.util.concurrent.TimeoutException
import java.util.concurrent.atomic.AtomicInteger

/**
 * Runs calls that may hang, on at most [THREADS] threads. The caller waits at most [limitMillis] for its call.
 *
 * A call that takes longer is abandoned with its thread. While all threads hang, new calls fail at once.
 */
internal class BoundedCalls(name: String, private val limitMillis: Long) {
    private val hanging = AtomicInteger()
    private val executor = ThreadPoolExecutor(THREADS, THREADS, IDLE_SECONDS, TimeUnit.SECONDS, LinkedBlockingQueue()) { work ->
        Thread(work, "synheart-$name").apply {
            isDaemon = true
            // A new thread inherits the class loader of its creator. A thread that native code made does not have the app's class loader.
            contextClassLoader = BoundedCalls::class.java.classLoader
        }
    }.apply { allowCoreThreadTimeOut(true) }

    private inner class Call<Value>(body: () -> Value) : FutureTask<Value>(body) {
        private var isRunning = false
        private var isAbandoned = false

        override fun run() {
            synchronized(this) { isRunning = true }
            super.run()
            synchronized(this) {
                isRunning = false
                if (isAbandoned) hanging.decrementAndGet()
            }
        }

        fun abandon() {
            executor.remove(this)
            synchronized(this) {
                isAbandoned = isRunning
                if (isAbandoned) hanging.incrementAndGet()
                // A thread may have taken the call from the queue. If `run` has not begun, it finds the call cancelled.
                cancel(false)
            }
        }
    }

    /** @throws TimeoutException if the call did not return within the limit, or all threads hang */
    fun <Value> run(body: () -> Value): Value {
        if (hanging.get() >= THREADS) throw TimeoutException("earlier calls hang")
        val call = Call(body)
        executor.execute(call)
        try {
            return call.get(limitMillis, TimeUnit.MILLISECONDS)
        } catch (error: ExecutionException) {
            throw error.cause ?: error
        } catch (error: TimeoutException) {
            call.abandon()
            throw error
        } catch (error: InterruptedException) {
            call.abandon()
            Thread.currentThread().interrupt()
            throw error
        }
    }

    private companion object {
        const val THREADS = 4
        const val IDLE_SECONDS = 10L
    }
}
