package io.flutter.plugin.common;

import java.util.concurrent.atomic.AtomicReference;

/** Stand-in: a channel of events with the standard codec. Dart listens and cancels by method calls. */
public final class EventChannel {
    private final BinaryMessenger messenger;
    private final String name;

    public EventChannel(BinaryMessenger messenger, String name) {
        this.messenger = messenger;
        this.name = name;
    }

    public void setStreamHandler(StreamHandler handler) {
        if (handler == null) {
            messenger.setMessageHandler(name, null);
            return;
        }
        AtomicReference<EventSink> active = new AtomicReference<>();
        messenger.setMessageHandler(name, (message, reply) -> {
            MethodCall call = StandardMethodCodec.INSTANCE.decodeMethodCall(message);
            if (call.method.equals("listen")) {
                EventSink sink = new EventSink() {
                    @Override
                    public void success(Object event) {
                        if (active.get() == this) {
                            messenger.send(name, StandardMethodCodec.INSTANCE.encodeSuccessEnvelope(event));
                        }
                    }

                    @Override
                    public void error(String code, String text, Object details) {
                        if (active.get() == this) {
                            messenger.send(name, StandardMethodCodec.INSTANCE.encodeErrorEnvelope(code, text, details));
                        }
                    }

                    @Override
                    public void endOfStream() {
                        if (active.compareAndSet(this, null)) {
                            messenger.send(name, null);
                        }
                    }
                };
                // After a hot restart, Dart listens again without a cancel.
                if (active.getAndSet(sink) != null) {
                    try {
                        handler.onCancel(null);
                    } catch (RuntimeException error) {
                        // Flutter logs the exception.
                    }
                }
                try {
                    handler.onListen(call.arguments, sink);
                    reply.reply(StandardMethodCodec.INSTANCE.encodeSuccessEnvelope(null));
                } catch (RuntimeException error) {
                    active.set(null);
                    reply.reply(StandardMethodCodec.INSTANCE.encodeErrorEnvelope("error", error.getMessage(), null));
                }
            } else if (call.method.equals("cancel")) {
                if (active.getAndSet(null) == null) {
                    reply.reply(StandardMethodCodec.INSTANCE.encodeErrorEnvelope("error", "No active stream to cancel", null));
                    return;
                }
                try {
                    handler.onCancel(call.arguments);
                    reply.reply(StandardMethodCodec.INSTANCE.encodeSuccessEnvelope(null));
                } catch (RuntimeException error) {
                    reply.reply(StandardMethodCodec.INSTANCE.encodeErrorEnvelope("error", error.getMessage(), null));
                }
            } else {
                reply.reply(null);
            }
        });
    }

    /** Starts and stops a stream, on the platform's main thread. */
    public interface StreamHandler {
        void onListen(Object arguments, EventSink events);

        void onCancel(Object arguments);
    }

    /** Takes events, on the platform's main thread. */
    public interface EventSink {
        void success(Object event);

        void error(String errorCode, String errorMessage, Object errorDetails);

        void endOfStream();
    }
}
