package io.flutter.plugin.common;

/** Stand-in: a channel of method calls under the standard codec. */
public class MethodChannel {
    private final BinaryMessenger messenger;
    private final String name;

    public MethodChannel(BinaryMessenger messenger, String name) {
        this.messenger = messenger;
        this.name = name;
    }

    public void setMethodCallHandler(MethodCallHandler handler) {
        messenger.setMessageHandler(name, handler == null ? null : (message, reply) -> {
            MethodCall call = StandardMethodCodec.INSTANCE.decodeMethodCall(message);
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
        });
    }

    /** Handles calls, on the platform's main thread. */
    public interface MethodCallHandler {
        void onMethodCall(MethodCall call, Result result);
    }

    /** Takes the result of a call, once. */
    public interface Result {
        void success(Object result);

        void error(String errorCode, String errorMessage, Object errorDetails);

        void notImplemented();
    }
}
