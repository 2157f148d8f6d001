@file:JvmName("Okio")

package okio

import java.io.ByteArrayOutputStream
import java.io.OutputStream

public interface Sink {
    public fun flush()
}

public interface BufferedSink : Sink {
    public fun write(source: ByteArray): BufferedSink
    public fun outputStream(): OutputStream
}

public class Buffer : BufferedSink {
    private val bytes = ByteArrayOutputStream()
    override fun write(source: ByteArray): Buffer = apply { bytes.write(source) }
    override fun outputStream(): OutputStream = bytes
    override fun flush() {}
    public fun readByteArray(): ByteArray = bytes.toByteArray()
}

private class OutputStreamSink(val output: OutputStream) : Sink {
    override fun flush() = output.flush()
}

/** Buffers up to 8 KiB, as Okio's segments do. */
private class BufferedOutput(sink: OutputStreamSink) : BufferedSink {
    private val output = java.io.BufferedOutputStream(sink.output, 8 * 1024)
    override fun write(source: ByteArray): BufferedSink = apply { output.write(source) }
    override fun outputStream(): OutputStream = output
    override fun flush() = output.flush()
}

@JvmName("sink")
public fun OutputStream.sink(): Sink = OutputStreamSink(this)

@JvmName("buffer")
public fun Sink.buffer(): BufferedSink = BufferedOutput(this as OutputStreamSink)
