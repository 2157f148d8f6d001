package io.flutter.plugin.common;

import java.nio.ByteBuffer;

/** Stand-in: sends bytes to Dart and receives them. */
public interface BinaryMessenger {
    void send(String channel, ByteBuffer message);

    void setMessageHandler(String channel, BinaryMessageHandler handler);

    /** Receives a message. The reply must be given once, on the platform's main thread. */
    interface BinaryMessageHandler {
        void onMessage(ByteBuffer message, BinaryReply reply);
    }

    /** Takes the reply; null means that nothing handles the message. */
    interface BinaryReply {
        void reply(ByteBuffer reply);
    }
}
