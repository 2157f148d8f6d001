// The Android Gradle plugin compiles Kotlin itself, with this compiler instead of its older one.
buildscript {
    repositories {
        google()
        mavenCentral()
    }
    dependencies { classpath(libs.kotlin.gradle.plugin) }
}

plugins {
    alias(libs.plugins.android.library) apply false
}
