pluginManagement {
    // The Flutter tool writes local.properties.
    val flutterSdk = java.util.Properties().run {
        file("local.properties").inputStream().use { load(it) }
        requireNotNull(getProperty("flutter.sdk")) { "local.properties has no flutter.sdk: run `flutter pub get`" }
    }
    includeBuild("$flutterSdk/packages/flutter_tools/gradle")

    repositories {
        google()
        mavenCentral()
        gradlePluginPortal()
    }
}

plugins {
    id("dev.flutter.flutter-plugin-loader") version "1.0.0"
    id("com.android.application") version "8.11.1" apply false
    id("org.jetbrains.kotlin.android") version "2.2.20" apply false
}

include(":app")
