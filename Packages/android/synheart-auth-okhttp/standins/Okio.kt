package okio

import java.io.ByteArrayOutputStream

public interface BufferedSink {
    public fun write(source: ByteArray)
}

public class Buffer : BufferedSink {
    private val bytes = ByteArrayOutputStream()
    override fun write(source: ByteArray): Unit = bytes.write(source)
    public fun readByteArray(): ByteArray = bytes.toByteArray()
}
