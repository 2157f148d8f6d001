package io.flutter.plugin.common;

import androidx.annotation.NonNull;
import androidx.annotation.Nullable;
import java.nio.ByteBuffer;

/** Stand-in: sends bytes to Dart and receives them. */
public interface BinaryMessenger {
    void send(@NonNull String channel, @Nullable ByteBuffer message);

    void setMessageHandler(@NonNull String channel, @Nullable BinaryMessageHandler handler);

    /** Receives a message. The reply must be given once, on the platform's main thread. */
    interface BinaryMessageHandler {
        void onMessage(@Nullable ByteBuffer message, @NonNull BinaryReply reply);
    }

    /** Takes the reply; null means that nothing handles the message. */
    interface BinaryReply {
        void reply(@Nullable ByteBuffer reply);
    }
}
