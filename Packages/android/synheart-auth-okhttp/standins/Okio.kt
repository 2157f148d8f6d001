package okio

import java.io.ByteArrayOutputStream

public interface BufferedSink {
    public fun write(source: ByteArray): BufferedSink
}

public class Buffer : BufferedSink {
    private val bytes = ByteArrayOutputStream()
    override fun write(source: ByteArray): Buffer = apply { bytes.write(source) }
    public fun readByteArray(): ByteArray = bytes.toByteArray()
}
