package io.flutter.embedding.engine.plugins;

import android.content.Context;
import androidx.annotation.NonNull;
import io.flutter.plugin.common.BinaryMessenger;

/** Stand-in: the methods of a plugin that the engine calls. */
public interface FlutterPlugin {
    void onAttachedToEngine(@NonNull FlutterPluginBinding binding);

    void onDetachedFromEngine(@NonNull FlutterPluginBinding binding);

    /** The objects that the engine gives to a plugin. Flutter's class has a longer constructor, which plugins do not call. */
    class FlutterPluginBinding {
        private final Context applicationContext;
        private final BinaryMessenger binaryMessenger;

        /** Stand-in only: Flutter's class has no constructor with only these two parameters. */
        public FlutterPluginBinding(Context applicationContext, BinaryMessenger binaryMessenger) {
            this.applicationContext = applicationContext;
            this.binaryMessenger = binaryMessenger;
        }

        @NonNull
        public Context getApplicationContext() {
            return applicationContext;
        }

        @NonNull
        public BinaryMessenger getBinaryMessenger() {
            return binaryMessenger;
        }
    }
}
