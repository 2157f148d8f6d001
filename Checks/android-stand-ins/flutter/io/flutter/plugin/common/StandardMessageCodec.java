package io.flutter.plugin.common;

import androidx.annotation.Nullable;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Stand-in: the standard message codec, in the host's byte order: one byte for the type, sizes in 1, 3 or 5 bytes, and 8-byte
 * values aligned to 8 bytes. Types that this plugin does not use are left out.
 */
public class StandardMessageCodec {
    public static final StandardMessageCodec INSTANCE = new StandardMessageCodec();

    private static final int NULL = 0;
    private static final int TRUE = 1;
    private static final int FALSE = 2;
    private static final int INT = 3;
    private static final int LONG = 4;
    private static final int DOUBLE = 6;
    private static final int STRING = 7;
    private static final int BYTES = 8;
    private static final int LIST = 12;
    private static final int MAP = 13;

    public StandardMessageCodec() {}

    @Nullable
    public ByteBuffer encodeMessage(@Nullable Object message) {
        if (message == null) {
            return null;
        }
        ByteArrayOutputStream stream = new ByteArrayOutputStream();
        writeValue(stream, message);
        return direct(stream);
    }

    @Nullable
    public Object decodeMessage(@Nullable ByteBuffer message) {
        if (message == null) {
            return null;
        }
        message.order(ByteOrder.nativeOrder());
        Object value = readValue(message);
        if (message.hasRemaining()) {
            throw new IllegalArgumentException("Message corrupted");
        }
        return value;
    }

    /** Copies the bytes into a direct buffer, because Flutter's messages are direct buffers. */
    static ByteBuffer direct(ByteArrayOutputStream stream) {
        ByteBuffer buffer = ByteBuffer.allocateDirect(stream.size()).order(ByteOrder.nativeOrder());
        buffer.put(stream.toByteArray());
        return buffer;
    }

    void writeValue(ByteArrayOutputStream stream, Object value) {
        if (value == null) {
            stream.write(NULL);
        } else if (value instanceof Boolean) {
            stream.write((Boolean) value ? TRUE : FALSE);
        } else if (value instanceof Integer || value instanceof Short || value instanceof Byte) {
            stream.write(INT);
            write(stream, buffer(4).putInt(((Number) value).intValue()));
        } else if (value instanceof Long) {
            stream.write(LONG);
            write(stream, buffer(8).putLong((Long) value));
        } else if (value instanceof Double || value instanceof Float) {
            stream.write(DOUBLE);
            while (stream.size() % 8 != 0) {
                stream.write(0);
            }
            write(stream, buffer(8).putDouble(((Number) value).doubleValue()));
        } else if (value instanceof CharSequence) {
            stream.write(STRING);
            byte[] bytes = value.toString().getBytes(StandardCharsets.UTF_8);
            writeSize(stream, bytes.length);
            stream.writeBytes(bytes);
        } else if (value instanceof byte[]) {
            stream.write(BYTES);
            writeSize(stream, ((byte[]) value).length);
            stream.writeBytes((byte[]) value);
        } else if (value instanceof List) {
            stream.write(LIST);
            writeSize(stream, ((List<?>) value).size());
            for (Object item : (List<?>) value) {
                writeValue(stream, item);
            }
        } else if (value instanceof Map) {
            stream.write(MAP);
            writeSize(stream, ((Map<?, ?>) value).size());
            for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
                writeValue(stream, entry.getKey());
                writeValue(stream, entry.getValue());
            }
        } else {
            throw new IllegalArgumentException("Unsupported value: '" + value + "' of type '" + value.getClass() + "'");
        }
    }

    Object readValue(ByteBuffer buffer) {
        switch (buffer.get()) {
            case NULL:
                return null;
            case TRUE:
                return true;
            case FALSE:
                return false;
            case INT:
                return buffer.getInt();
            case LONG:
                return buffer.getLong();
            case DOUBLE:
                buffer.position((buffer.position() + 7) / 8 * 8);
                return buffer.getDouble();
            case STRING:
                return new String(readBytes(buffer), StandardCharsets.UTF_8);
            case BYTES:
                return readBytes(buffer);
            case LIST: {
                int size = readSize(buffer);
                List<Object> list = new ArrayList<>();
                for (int index = 0; index < size; index += 1) {
                    list.add(readValue(buffer));
                }
                return list;
            }
            case MAP: {
                int size = readSize(buffer);
                Map<Object, Object> map = new HashMap<>();
                for (int index = 0; index < size; index += 1) {
                    map.put(readValue(buffer), readValue(buffer));
                }
                return map;
            }
            default:
                throw new IllegalArgumentException("Message corrupted");
        }
    }

    private static ByteBuffer buffer(int size) {
        return ByteBuffer.allocate(size).order(ByteOrder.nativeOrder());
    }

    private static void write(ByteArrayOutputStream stream, ByteBuffer value) {
        stream.writeBytes(value.array());
    }

    private static void writeSize(ByteArrayOutputStream stream, int size) {
        if (size < 254) {
            stream.write(size);
        } else if (size <= 0xffff) {
            stream.write(254);
            write(stream, buffer(2).putChar((char) size));
        } else {
            stream.write(255);
            write(stream, buffer(4).putInt(size));
        }
    }

    private static int readSize(ByteBuffer buffer) {
        int first = buffer.get() & 0xff;
        if (first < 254) {
            return first;
        }
        return first == 254 ? buffer.getChar() : buffer.getInt();
    }

    private static byte[] readBytes(ByteBuffer buffer) {
        byte[] bytes = new byte[readSize(buffer)];
        buffer.get(bytes);
        return bytes;
    }
}
