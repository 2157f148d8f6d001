package io.flutter.plugin.common;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Stand-in: encodes method calls, and the envelopes of their results, with {@link StandardMessageCodec}. */
public final class StandardMethodCodec {
    public static final StandardMethodCodec INSTANCE = new StandardMethodCodec();

    private StandardMethodCodec() {}

    public ByteBuffer encodeMethodCall(MethodCall call) {
        return encode(-1, call.method, call.arguments);
    }

    public MethodCall decodeMethodCall(ByteBuffer message) {
        message.order(ByteOrder.nativeOrder());
        Object method = StandardMessageCodec.INSTANCE.readValue(message);
        Object arguments = StandardMessageCodec.INSTANCE.readValue(message);
        if (method instanceof String && !message.hasRemaining()) {
            return new MethodCall((String) method, arguments);
        }
        throw new IllegalArgumentException("Method call corrupted");
    }

    public ByteBuffer encodeSuccessEnvelope(Object result) {
        return encode(0, result);
    }

    public ByteBuffer encodeErrorEnvelope(String code, String message, Object details) {
        return encode(1, code, message, details);
    }

    private static ByteBuffer encode(int first, Object... values) {
        ByteArrayOutputStream stream = new ByteArrayOutputStream();
        if (first >= 0) {
            stream.write(first);
        }
        for (Object value : values) {
            StandardMessageCodec.INSTANCE.writeValue(stream, value);
        }
        return StandardMessageCodec.direct(stream);
    }
}
