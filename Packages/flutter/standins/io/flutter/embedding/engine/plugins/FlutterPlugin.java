package io.flutter.embedding.engine.plugins;

import android.content.Context;
import io.flutter.plugin.common.BinaryMessenger;

/** Stand-in: what the engine calls of a plugin. */
public interface FlutterPlugin {
    void onAttachedToEngine(FlutterPluginBinding binding);

    void onDetachedFromEngine(FlutterPluginBinding binding);

    /** What the engine lends to a plugin. Flutter's class has a longer constructor, which plugins do not call. */
    class FlutterPluginBinding {
        private final Context applicationContext;
        private final BinaryMessenger binaryMessenger;

        public FlutterPluginBinding(Context applicationContext, BinaryMessenger binaryMessenger) {
            this.applicationContext = applicationContext;
            this.binaryMessenger = binaryMessenger;
        }

        public Context getApplicationContext() {
            return applicationContext;
        }

        public BinaryMessenger getBinaryMessenger() {
            return binaryMessenger;
        }
    }
}
