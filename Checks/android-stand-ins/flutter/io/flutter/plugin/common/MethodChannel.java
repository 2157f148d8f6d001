package io.flutter.plugin.common;

import androidx.annotation.NonNull;
import androidx.annotation.Nullable;

/** Stand-in: a channel of method calls with the standard codec. */
public class MethodChannel {
    private final BinaryMessenger messenger;
    private final String name;

    public MethodChannel(BinaryMessenger messenger, String name) {
        this.messenger = messenger;
        this.name = name;
    }

    public void setMethodCallHandler(@Nullable MethodCallHandler handler) {
        messenger.setMessageHandler(name, handler == null ? null : (message, reply) -> {
            MethodCall call = StandardMethodCodec.INSTANCE.decodeMethodCall(message);
            try {
                handler.onMethodCall(call, new Result() {
                    @Override
                    public void success(Object result) {
                        reply.reply(StandardMethodCodec.INSTANCE.encodeSuccessEnvelope(result));
                    }

                    @Override
                    public void error(String code, String text, Object details) {
                        reply.reply(StandardMethodCodec.INSTANCE.encodeErrorEnvelope(code, text, details));
                    }

                    @Override
                    public void notImplemented() {
                        reply.reply(null);
                    }
                });
            } catch (RuntimeException error) {
                // Flutter logs the failure of a handler and tells Dart.
                reply.reply(StandardMethodCodec.INSTANCE.encodeErrorEnvelope("error", error.getMessage(), null));
            }
        });
    }

    /** Handles calls, on the platform's main thread. */
    public interface MethodCallHandler {
        void onMethodCall(@NonNull MethodCall call, @NonNull Result result);
    }

    /** Takes the result of a call, once. */
    public interface Result {
        void success(@Nullable Object result);

        void error(String errorCode, @Nullable String errorMessage, @Nullable Object errorDetails);

        void notImplemented();
    }
}
