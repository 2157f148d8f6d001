package io.flutter.plugin.common;

import androidx.annotation.NonNull;
import androidx.annotation.Nullable;

/** Stand-in: a method and its arguments. */
public final class MethodCall {
    public final String method;
    public final Object arguments;

    public MethodCall(@NonNull String method, @Nullable Object arguments) {
        this.method = method;
        this.arguments = arguments;
    }
}
