package ai.synheart.auth

import java.io.IOException
import java.io.OutputStream
import java.security.MessageDigest
import kotlin.coroutines.EmptyCoroutineContext
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.suspendCancellableCoroutine

/**
 * A streamed body whose size and digest are known. It writes the last byte only if the digest of all bytes is the signed one: a
 * server never gets a complete request with a different body.
 */
internal class MeasuredBody private constructor(
    private val source: StreamedBody,
    /** Bytes. */
    val size: Long,
    /** SHA-256. */
    val digest: ByteArray,
) : StreamedBody {
    /** The error of the latest [writeTo], if the source could not be read again or did not give the signed body; else null. */
    @Volatile
    var failure: IOException? = null
        private set

    override fun writeTo(output: OutputStream) {
        failure = null
        val copy = Copy(output)
        try {
            source.writeTo(copy)
        } catch (error: Exception) {
            throw copy.outputFailure ?: failure ?: failed("the body could not be read again", error)
        }
        copy.finish()
    }

    private fun failed(message: String, cause: Exception? = null) = IOException(message, cause).also { failure = it }

    /** Passes on the source's bytes except the last one, which `finish` sends once the digest is right. */
    private inner class Copy(private val output: OutputStream) : OutputStream() {
        private val hash = MessageDigest.getInstance("SHA-256")
        private var count = 0L
        private var lastByte = 0

        /** The transport's error, which a source may hide. */
        var outputFailure: Exception? = null
            private set

        override fun write(byte: Int) = write(byteArrayOf(byte.toByte()), 0, 1)

        override fun write(bytes: ByteArray, offset: Int, length: Int) {
            outputFailure?.let { throw it }
            if (length == 0) return
            hash.update(bytes, offset, length)
            count += length
            if (count > size) throw failed("the body is not the one that was signed: it is longer")
            if (count == size) lastByte = bytes[offset + length - 1].toInt()
            pass { output.write(bytes, offset, if (count == size) length - 1 else length) }
        }

        override fun flush() = pass { output.flush() }

        fun finish() {
            outputFailure?.let { throw it }
            if (!MessageDigest.isEqual(hash.digest(), digest)) throw failed("the body is not the one that was signed")
            if (size > 0) pass { output.write(lastByte) }
            flush()
        }

        private inline fun pass(write: () -> Unit) = try {
            write()
        } catch (error: Exception) {
            outputFailure = error
            throw error
        }
    }

    companion object {
        /** Up to 16 threads besides those that `Dispatchers.IO` has for the app. A source that hangs blocks one of the 16. */
        private val READING = Dispatchers.IO.limitedParallelism(16)

        /** Reads the body once. Throws `SIGNING_FAILED` if that is not possible. */
        suspend fun of(source: StreamedBody): MeasuredBody = suspendCancellableCoroutine { continuation ->
            READING.dispatch(EmptyCoroutineContext) {
                val meter = Meter { continuation.isActive }
                continuation.resumeWith(
                    try {
                        source.writeTo(meter)
                        Result.success(MeasuredBody(source, meter.count, meter.hash.digest()))
                    } catch (error: Exception) {
                        Result.failure(failure(OwnCode.SIGNING_FAILED, "the body cannot be read", error))
                    } catch (error: Throwable) {
                        // An `Error` of the source reaches the caller unchanged.
                        Result.failure(error)
                    },
                )
            }
        }
    }

    /** Counts and digests bytes while a caller waits for the result. */
    private class Meter(private val isWanted: () -> Boolean) : OutputStream() {
        val hash: MessageDigest = MessageDigest.getInstance("SHA-256")
        var count = 0L
            private set

        override fun write(byte: Int) = write(byteArrayOf(byte.toByte()), 0, 1)

        override fun write(bytes: ByteArray, offset: Int, length: Int) {
            if (!isWanted()) throw IOException("the caller has left")
            hash.update(bytes, offset, length)
            count += length
        }
    }
}
